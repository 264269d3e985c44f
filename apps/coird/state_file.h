#pragma once

#include <coir/error.h>
#include <coir/file.h>
#include <fcntl.h>
#include <time.h>

#include <expected>
#include <optional>
#include <span>
#include <string_view>

#include "options/options.h"

// The files of the folder of --state. README.md lists them. Each is replaced whole, and ends with the line of its sum
// (coir/sum.h); a kill or a loss of power leaves the old content or the new one, but where the disk is full: see rewrite_state.

// make_state_folder makes the folder, if its parent is there, for the user that coird becomes. If the options are not in order
// (`good`), the user may be what is missing: the folder is then given to the user of the next start that knows one. If it cannot
// be made, the first write there says so.
void make_state_folder(const Options& options, bool good) noexcept;

// is_held tells whether a start has made the folder that has not known whom coird becomes, or not given it away yet.
bool is_held(const char* folder) noexcept;

// remove_leftovers removes the temporary files that kills have left there, unless a coirctl writes there now.
void remove_leftovers(const char* folder) noexcept;

// open_state opens a file to read or to write it. coird may still be root, and the folder is another user's: it follows
// no link, and waits for no pipe.
std::expected<coir::File, coir::Error> open_state(const char* path, int access = O_RDONLY) noexcept;

// read_state reads a file into `room`, and returns its content without the sum. Nothing: there is none, or it cannot be
// read or is damaged, which one line has said. A file of just `bare` bytes counts without a sum: coird wrote it before there
// were sums.
std::optional<std::string_view> read_state(const char* path, std::span<char> room, std::size_t bare = 0) noexcept;

// write_state makes `content`, and `end` behind it, the content of a file that its owner alone can read, changed at `date` if
// it is given.
// When it has returned without an error, a loss of power takes nothing back. Else tell_unkept says so, but for a folder that is
// read-only or not there: the line about the record of the run covers it.
[[nodiscard]] std::expected<void, coir::Error> write_state(const char* path, std::span<const char> content,
                                                           std::optional<timespec> date = std::nullopt,
                                                           std::string_view end = {}) noexcept;
// rewrite_state writes `content` over what the file holds: a full disk takes no other file. A kill or a loss of power on the way
// may leave it damaged.
[[nodiscard]] std::expected<void, coir::Error> rewrite_state(const char* path, std::string_view content) noexcept;
void tell_unkept(const char* path, coir::Error error) noexcept;
