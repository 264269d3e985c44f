#pragma once

// Log lines that never wait for their reader.
//
//   log_line("coird: it runs\n");

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace coir {

// log_line writes one line, its end included, to standard error, and never waits: if the reader of standard error
// leaves no room, the line is dropped and counted. The next line that finds room follows one that says how many were
// dropped. A line of at most 4,096 bytes is written whole or not at all, and lines of several threads do not mix. False: the
// line was dropped. Any thread; one system call.
//
// Standard error keeps its flags, for other programs may share it: a pipe or a terminal is opened a second time, by
// /proc, for writing without waiting. Where that fails log_line asks for room first; another program that writes to the
// same pipe can defeat this. A regular file is written to directly.
bool log_line(std::string_view line) noexcept;

// keep_log_lines has the latest lines of log_line kept, dropped ones too, in kRecentLogBytes that are the program's own; or
// no longer. Off at first. remember_log_line keeps one that was written elsewhere. recent_log_lines copies them, the oldest
// first, as many whole ones as fit; `first` becomes the number of the first of them, or without one that of the next: line 1 is the
// first that was kept. Any thread. crash_log_lines does so in a signal handler: it does not wait for a line
// that is being kept, and may have a part of it. recent_lines.cpp has them.
inline constexpr std::size_t kRecentLogBytes = 8192;
void keep_log_lines(bool keep) noexcept;
void remember_log_line(std::string_view line) noexcept;
std::string_view recent_log_lines(std::span<char> into, std::uint64_t* first = nullptr) noexcept;
std::string_view crash_log_lines(std::span<char> into) noexcept;

// log_lines_dropped is how many lines were dropped in all.
std::uint64_t log_lines_dropped() noexcept;

}  // namespace coir
