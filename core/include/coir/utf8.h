#pragma once

#include <string_view>

namespace coir {

// is_utf8 tells whether all of `text` is UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF,
// no character that is cut off at the end. The empty text is. Cost: eight bytes at a time where they are ASCII. Any
// context, a signal handler too.
bool is_utf8(std::string_view text) noexcept;

}  // namespace coir
