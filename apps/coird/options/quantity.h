#pragma once

#include <coir/deadline.h>

#include <cstdint>
#include <optional>
#include <string_view>

// parse_size reads a number of bytes, "1536" or "12M": a whole number and K, M, G or nothing. Null: it is none.
std::optional<std::uint64_t> parse_size(std::string_view text) noexcept;

// parse_time reads a span, "300ms", "30s", "5m" or, in seconds, "30": above 0, and of at most a year. Null: it is none.
std::optional<std::chrono::milliseconds> parse_time(std::string_view text) noexcept;
