#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace coir::mcp::detail {

// is_plain_value tells whether a field may hold the text as it stands: visible ASCII with spaces inside, and nothing that
// looks as if it were encoded.
bool is_plain_value(std::string_view text) noexcept;

// encode_value writes the text as "=?base64?...?=" and returns that; absent: there is no room.
std::string_view encode_value(std::string_view text, std::span<char> room) noexcept;

}  // namespace coir::mcp::detail
