#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace coir::mcp {

// decode_field_value returns what a field's value stands for: itself, or what "=?base64?...?=" encodes, which is put
// into `room`. Nullopt: it is no base64 of UTF-8, or does not fit.
std::optional<std::string_view> decode_field_value(std::string_view value, std::span<char> room) noexcept;

// field_says tells whether a field's value stands for `wanted`, of any length.
bool field_says(std::string_view value, std::string_view wanted) noexcept;

}  // namespace coir::mcp
