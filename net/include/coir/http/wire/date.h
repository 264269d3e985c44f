#pragma once

// Dates of HTTP.
//
//   char line[kDateBytes];
//   format_date(1700000000, line);
//   const auto seconds = parse_date({line, sizeof line}, 1700000000);
//   show(seconds.value_or(0));

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace coir::http {

// Times are seconds since 1970-01-01 00:00:00 UTC, passed in by the caller.

inline constexpr std::size_t kDateBytes = 29;

// format_date writes an IMF-fixdate, "Sun, 06 Nov 1994 08:49:37 GMT". `unix_seconds` outside the years 0 to 9999 is
// clamped.
void format_date(std::int64_t unix_seconds, std::span<char, kDateBytes> out) noexcept;

// parse_date reads the three formats of RFC 9110, 5.6.7: IMF-fixdate, RFC 850 (whose two-digit year is taken as the
// latest that is at most 50 years after `now`) and asctime. Case matters and nothing may surround the date. The name of
// the day is checked to be one, not to be the right one. Second 60 is accepted as the first of the next minute.
std::optional<std::int64_t> parse_date(std::string_view text, std::int64_t now) noexcept;

// kClockIsSet is 2020-01-01. A board without a clock starts in 1970, and a server without a clock must not send Date
// (RFC 9110, 6.6.1): an earlier time is taken for an unset clock.
inline constexpr std::int64_t kClockIsSet = 1577836800;

// CachedDate keeps the Date line of a response and writes it anew when the second changes. One per worker; not shared.
class CachedDate {
 public:
  // line returns "Date: ...\r\n" for `unix_seconds`, empty when the clock is not set. Valid until the next call.
  std::string_view line(std::int64_t unix_seconds) noexcept {
    if (unix_seconds != second_) refresh(unix_seconds);
    return {line_, size_};
  }

 private:
  void refresh(std::int64_t unix_seconds) noexcept;

  std::int64_t second_ = INT64_MIN;
  std::uint32_t size_ = 0;
  char line_[40];
};

}  // namespace coir::http
