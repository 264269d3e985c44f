#pragma once

#include "options/options.h"

// --user and --group: whom coird becomes once it has bound its addresses and read its files.
[[nodiscard]] bool take_user(const Setting& setting, Options& options) noexcept;
[[nodiscard]] bool take_group(const Setting& setting, Options& options) noexcept;

// Identity is a user and a group by their numbers.
struct Identity {
  bool changes = false;
  unsigned user = 0, group = 0;
};

// find_identity looks the names up. False: one line has said which there is not.
[[nodiscard]] bool find_identity(const Options& options, Identity& identity) noexcept;

// become gives up what the process may do more than they, for good. Before the run, as the kernel does so for one thread. False: one line has said why not.
[[nodiscard]] bool become(const Identity& identity) noexcept;
