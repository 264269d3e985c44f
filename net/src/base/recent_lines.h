#pragma once

#include <coir/net/log_line.h>

namespace coir {

// LogRing is the kept lines, and what the log knows of its sources.
struct LogRing {
  // admit takes a line of a source. Nothing: the level or the rate leaves it out. Else how many lines of the source have been
  // left out since the last one.
  static std::optional<std::uint64_t> admit(LogSource& source, LogLevel level) noexcept;
  // wanted tells whether the level leaves a line in.
  static bool wanted(LogLevel level) noexcept;
  static void keep(LogSource& source, LogLevel level, std::string_view line) noexcept;

  // index_of is the place of a source among those that have lines. The lock is held.
  static std::uint8_t index_of(LogSource& source) noexcept;
  static const char* name_of(const LogSource& source) noexcept { return source.name_; }
};

}  // namespace coir
