#pragma once

#include <coir/deadline.h>
#include <coir/errno.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace coir {

// parse_size reads a number of bytes, as options have it: "1536", "64K", "12M" or "2G", at most 2^63 - 1. Null: the text
// is none.
//
//   if (const auto bytes = coir::parse_size(text)) show(*bytes);
std::optional<std::uint64_t> parse_size(std::string_view text) noexcept;

// parse_time reads a time: "300ms", "30s", "5m", "2h" or, in seconds, "30". It is above 0 and at most 366 days. Null: the
// text is none.
std::optional<std::chrono::milliseconds> parse_time(std::string_view text) noexcept;

}  // namespace coir
