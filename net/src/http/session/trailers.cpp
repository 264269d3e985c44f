// Session, of session.h: the fields that follow chunked content of a response.

#include <coir/http/wire/request.h>
#include <string.h>

#include <algorithm>

#include "http/session/session.h"
#include "http/text/characters.h"

namespace coir::http {

// add_trailer keeps the field where the fields of the head were, which has been written by now.
std::expected<void, Error> Session::add_trailer(std::string_view name, std::string_view value) noexcept {
  hold();
  if (phase_ != Phase::content) return std::unexpected(Error{ErrorCode::invalid});
  if (content_kind_ != Content::chunked || !list_has_token(request_.header("TE"), "trailers"))
    return std::unexpected(Error{ErrorCode::unsupported});
  if (!is_token(name) || std::ranges::any_of(value, [](char c) { return is(c, kFieldControl); }))
    return std::unexpected(Error{ErrorCode::invalid});
  if (name.size() + value.size() + 4 > sizeof buffers->added_fields - added_)
    return std::unexpected(Error{ErrorCode::limit});
  for (const std::string_view piece : {name, std::string_view(": "), value, std::string_view("\r\n")}) {
    memcpy(buffers->added_fields + added_, piece.data(), piece.size());
    added_ += static_cast<std::uint16_t>(piece.size());
  }
  return {};
}

std::expected<void, Error> Session::end_chunks() noexcept {
  if (added_ == 0) return append(kLastChunk);
  if (auto sent = append("0\r\n"); !sent) return sent;
  if (auto sent = append({buffers->added_fields, added_}); !sent) return sent;
  return append("\r\n");
}

}  // namespace coir::http
