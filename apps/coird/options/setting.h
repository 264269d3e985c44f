#pragma once

#include <coir/deadline.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>

#include "../complaint.h"

struct Options;
struct Row;
struct Setting;

// Take has a setting count. False: one line has said what is wrong.
using Take = bool (*)(const Setting& setting, Options& options) noexcept;

// The cure that most complaints name.
inline constexpr const char* kSeeHelp = "coird --help lists the options";

// Setting is an option as it was given: on the command line, or on a line of a file.
struct Setting {
  const Row* row = nullptr;
  const char* text = "";       // ends in a null; "" for a flag of the command line
  const char* file = nullptr;  // null: the command line
  std::size_t line = 0;

  // wrong says in one line what is wrong with it, and the cure, and returns false:
  //
  //   coird: --max-body 'x': not a number from 0 to 9 (coird --help lists the options)
  //   coird: coird.conf:12: max-body: not a number from 0 to 9; coird --help lists the options
  bool wrong(const char* cure, std::initializer_list<Word> what) const noexcept;
  bool wrong(std::initializer_list<Word> what) const noexcept { return wrong(kSeeHelp, what); }

  // is_route_key tells whether it is a key of a section [route PREFIX]: its text is then KEY=VALUE.
  bool is_route_key() const noexcept;

  // These read the text as the row's kind. Nothing: a line has said what is wrong.
  std::optional<bool> flag() const noexcept;
  std::optional<std::uint64_t> number() const noexcept;
  std::optional<std::chrono::milliseconds> time() const noexcept;
  bool names_file() const noexcept;
};
