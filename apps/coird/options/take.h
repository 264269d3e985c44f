#pragma once

#include "options.h"
#include "setting.h"

// take_* are the functions of rows whose option is one member of Options.

// member is a member of Options, or of what it holds.
template <auto kMember>
auto& member(Options& options) noexcept {
  if constexpr (requires { options.*kMember; }) {
    return options.*kMember;
  } else if constexpr (requires { options.server.*kMember; }) {
    return options.server.*kMember;
  } else if constexpr (requires { options.server.limits.*kMember; }) {
    return options.server.limits.*kMember;
  } else {
    return options.mcp.*kMember;
  }
}

template <auto kMember, auto kRead>
bool take_read(const Setting& setting, Options& options) noexcept {
  const auto value = (setting.*kRead)();
  auto& into = member<kMember>(options);
  if (value) into = static_cast<std::remove_reference_t<decltype(into)>>(*value);
  return value.has_value();
}

template <auto kMember>
inline constexpr Take take_flag = take_read<kMember, &Setting::flag>;
template <auto kMember>
inline constexpr Take take_number = take_read<kMember, &Setting::number>;
template <auto kMember>
inline constexpr Take take_time = take_read<kMember, &Setting::time>;

template <auto kMember>
bool take_file(const Setting& setting, Options& options) noexcept {
  if (!setting.names_file()) return false;
  member<kMember>(options) = setting.text;
  return true;
}

// take_given_file also notes that it was given.
template <auto kMember, auto kGiven>
bool take_given_file(const Setting& setting, Options& options) noexcept {
  return member<kGiven>(options) = take_file<kMember>(setting, options);
}

template <Options::Action kAction>
bool take_action(const Setting&, Options& options) noexcept {
  options.action = kAction;
  return true;
}
