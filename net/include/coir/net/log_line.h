#pragma once

// Log lines that never wait for their reader.
//
//   log_line("coird: it runs\n");
//
//   static constinit LogSource logins("logins", {.burst = 5, .spacing = 10s});
//   log_line(logins, LogLevel::warning, "coird: a wrong token\n");

#include <coir/detail/chrono.h>
#include <coir/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace coir {

// LogLevel is how much a line matters, by syslog's names and numbers. A request's line is info.
enum class LogLevel : std::uint8_t { error = 3, warning = 4, notice = 5, info = 6 };
std::string_view name_of(LogLevel level) noexcept;
std::optional<LogLevel> log_level_of(std::string_view name) noexcept;

// LogRate is how many lines of one source are logged at once, and how often a further one. A burst of 0 is any number.
struct LogRate {
  unsigned burst = 0;
  std::chrono::milliseconds spacing{0};
};

// LogSource is a part of the program that logs. A line beyond its rate is left out of the log, and its next line follows one
// that says how many were left out. Static, for `name` and the source outlive the log. Any thread.
class LogSource {
 public:
  explicit constexpr LogSource(const char* name, LogRate rate = {}) noexcept : name_(name), rate_(rate) {}
  LogSource(const LogSource&) = delete;
  LogSource& operator=(const LogSource&) = delete;

 private:
  friend struct LogRing;

  const char* name_;
  LogRate rate_;
  // Guarded by the lock of the kept lines.
  std::int64_t full_until_ns_ = 0;  // when the whole burst is free again
  std::uint64_t left_out_ = 0;
  std::uint8_t index_ = 0;  // among the sources that have kept lines; 0: it has none yet
};

// log_line writes one line, its end included, to standard error, and never waits: if the reader of standard error
// leaves no room, the line is dropped and counted. The next line that finds room follows one that says how many were
// dropped. A line of at most 4,096 bytes is written whole or not at all, and lines of several threads do not mix. False: the
// line was dropped, or left out. Any thread; one system call.
//
// The first `prefix` bytes, such as the program's name, are for standard error alone. Without a source the line is a notice
// of source "program", which has no rate.
//
// Standard error keeps its flags, for other programs may share it: a pipe or a terminal is opened a second time, by
// /proc, for writing without waiting. If that fails, log_line asks for room first; another program that writes to the
// same pipe can defeat this. A regular file is written to directly.
bool log_line(std::string_view line) noexcept;
bool log_line(LogSource& source, LogLevel level, std::string_view line, std::size_t prefix = 0) noexcept;

// set_log_level leaves lines that matter less out of the log, uncounted. Any thread.
void set_log_level(LogLevel least) noexcept;

// keep_log_lines has the latest lines of log_line kept, dropped ones too, in kRecentLogBytes that are the program's own; or
// no longer. Off at first. remember_log_line keeps one that was written elsewhere. To make room, the source that has most
// bytes loses its oldest line: a source that floods the log pushes its own lines out. recent_lines.cpp has them.
inline constexpr std::size_t kRecentLogBytes = 8192;
inline constexpr std::size_t kMostKeptOfLine = 2048;
void keep_log_lines(bool keep) noexcept;
void remember_log_line(LogSource& source, LogLevel level, std::string_view line, std::size_t prefix = 0) noexcept;

// on_log_line has `call` called, by the thread that logs, once a line is kept; null: no longer.
void on_log_line(void (*call)() noexcept) noexcept;

// LogRecord (log_record.cpp) is a kept line. It is written as key=value: t=2026-11-27T13:11:22Z level=notice
// source=coird msg="it runs". The value of msg is quoted as a string of JSON is.
struct LogRecord {
  static constexpr std::size_t kTimeBytes = 24;

  std::uint64_t number = 0;  // the first line that was kept is 1
  std::int64_t unix_seconds = 0;
  LogLevel level = LogLevel::notice;
  std::string_view source, text;

  std::string_view time(std::span<char, kTimeBytes> room) const noexcept;
  void add_to(Formatter& out) const noexcept;
};

// LogReader reads the kept lines one by one, the oldest first, from number `next` on.
class LogReader {
 public:
  explicit LogReader(std::uint64_t next = 0, LogLevel least = LogLevel::info) noexcept : next_(next), least_(least) {}

  // read returns the next line, its text in `room`, which is kMostKeptOfLine long; nothing: there is none yet. Any thread.
  std::optional<LogRecord> read(std::span<char> room) noexcept;

  std::uint64_t next() const noexcept { return next_; }
  // lost is how many lines were gone before they were read, of any level. Lines before the first one read do not count
  // where `next` was 0.
  std::uint64_t lost() const noexcept { return lost_; }

 private:
  std::uint64_t next_;
  std::uint64_t lost_ = 0;
  LogLevel least_;
};

// recent_log_lines writes the kept lines as key=value, the oldest first, as many of the latest as fit. Any thread.
// crash_log_lines does so in a signal handler: it does not wait for a line that is being kept, and may have a part of it.
std::string_view recent_log_lines(std::span<char> into) noexcept;
std::string_view crash_log_lines(std::span<char> into) noexcept;

// log_lines_dropped is how many lines were dropped in all, log_lines_left_out how many of those beyond a source's rate.
std::uint64_t log_lines_dropped() noexcept;
std::uint64_t log_lines_left_out() noexcept;

}  // namespace coir
