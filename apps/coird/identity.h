#pragma once

#include <optional>

#include "options/options.h"

// Identity is the user and the group of --user and --group, by their numbers. coird becomes them once it has bound its
// addresses and read its files. `readers` is the group of --control-readers.
struct Identity {
  bool changes = false;
  unsigned user = 0, group = 0;
  std::optional<unsigned> readers = {};
};

// find_owner looks the user and the group up, and says nothing. Null, or the option whose name there is not.
const char* find_owner(const Options& options, Identity& identity) noexcept;

// find_identity looks all names up. False: one line has said which there is not. Safe mode starts all the same: started
// by root, and with no user that there is, coird becomes the owner of the folder of --state, as the line that names a
// user may be what is wrong; if that is root,
// nobody in the place of a user that there is not, and where no start with options in order has had the folder. Started by another user
// it becomes nobody else.
[[nodiscard]] bool find_identity(const Options& options, Identity& identity) noexcept;

// make_room_for_files raises the most files that all processes may have open at once, before coird gives up that right, if it
// stays root: one that may not administer the system has no more, and each connection is one. Before keep_writes.
void make_room_for_files(const Options& options, const Identity& identity) noexcept;

// become gives up what the process may do more than they, for good. A process that stays root keeps the capabilities that it
// uses later, and those alone; with --no-sandbox all. Before the run, as the kernel does so for one thread. False: one line has
// said why not.
[[nodiscard]] bool become(const Options& options, const Identity& identity) noexcept;
