#include <coir/quantity.h>

#include <charconv>
#include <limits>
#include <system_error>

namespace coir {
namespace {

// parse_number takes a whole number off the front of `text`.
std::optional<std::uint64_t> parse_number(std::string_view& text) noexcept {
  std::uint64_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

}  // namespace

std::optional<std::uint64_t> parse_size(std::string_view text) noexcept {
  const auto number = parse_number(text);
  if (!number) return std::nullopt;
  unsigned shift = 0;
  if (text == "K") shift = 10;
  if (text == "M") shift = 20;
  if (text == "G") shift = 30;
  if ((!text.empty() && shift == 0) || *number > std::numeric_limits<std::int64_t>::max() >> shift) return std::nullopt;
  return *number << shift;
}

std::optional<std::chrono::milliseconds> parse_time(std::string_view text) noexcept {
  const auto number = parse_number(text);
  std::uint64_t unit = 0;
  if (text == "ms") unit = 1;
  if (text == "s" || text.empty()) unit = 1'000;
  if (text == "m") unit = 60'000;
  if (text == "h") unit = 3'600'000;
  constexpr std::uint64_t kLongest = 366ull * 24 * 3600 * 1000;
  if (!number || unit == 0 || *number == 0 || *number > kLongest / unit) return std::nullopt;
  return std::chrono::milliseconds(*number * unit);
}

}  // namespace coir
