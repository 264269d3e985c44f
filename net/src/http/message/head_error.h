#pragma once

#include <coir/http/wire/request.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace coir::http {

// head_error says which status a head deserves that the parser has refused or that has outgrown the limits: that of the
// first violation, read from the start of the request line. Only the bytes up to the violation decide, so the answer is
// the same however much of the head had arrived. A head without a violation is too long: 414 when it ends inside its
// request line, else 431.
std::uint16_t head_error(std::string_view head, const Limits& limits, std::size_t max_headers) noexcept;

// asks_for_head tells whether a head, be it whole or not, bad or not, is that of a HEAD request: the answer to it has
// no content.
bool asks_for_head(std::string_view bytes) noexcept;

}  // namespace coir::http
