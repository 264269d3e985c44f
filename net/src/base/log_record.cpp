#include <coir/net/log_line.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace coir {
namespace {

struct Name {
  LogLevel level;
  std::string_view text;
};

constexpr Name kNames[] = {
    {LogLevel::error, "error"}, {LogLevel::warning, "warning"}, {LogLevel::notice, "notice"}, {LogLevel::info, "info"}};

}  // namespace

std::string_view name_of(LogLevel level) noexcept {
  const auto* const found = std::ranges::find(kNames, level, &Name::level);
  return found != std::end(kNames) ? found->text : "unknown";
}

std::optional<LogLevel> log_level_of(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(kNames, name, &Name::text);
  if (found == std::end(kNames)) return std::nullopt;
  return found->level;
}

std::string_view LogRecord::time(std::span<char, kTimeBytes> room) const noexcept {
  const auto seconds = static_cast<time_t>(unix_seconds);
  tm utc{};
  ::gmtime_r(&seconds, &utc);  // with this C library a calculation, also for a signal handler
  return format(room, utc.tm_year + 1900, "-", zeros(utc.tm_mon + 1, 2), "-", zeros(utc.tm_mday, 2), "T",
                zeros(utc.tm_hour, 2), ":", zeros(utc.tm_min, 2), ":", zeros(utc.tm_sec, 2), "Z");
}

void LogRecord::add_to(Formatter& out) const noexcept {
  std::array<char, kTimeBytes> room;
  out.add("t=", time(room), " level=", name_of(level), " source=", source, " msg=", json_quoted(text), "\n");
}

}  // namespace coir
