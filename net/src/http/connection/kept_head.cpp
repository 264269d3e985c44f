#include "http/connection/kept_head.h"

#include <string.h>

#include "base/rounded.h"

namespace coir::http {

std::string_view KeptHead::take(std::string_view piece) noexcept {
  memcpy(memory_, piece.data(), piece.size());
  return {memory_, piece.size()};
}

bool KeptHead::settle(Request& request, std::size_t head_bytes) noexcept {
  const std::size_t fields = request.headers.size() * sizeof(Header), at = rounded(head_bytes, alignof(Header));
  if (at + fields > kBytes) return false;
  text_ = {memory_, head_bytes};
  memcpy(memory_ + at, request.headers.data(), fields);
  request.headers = {reinterpret_cast<Header*>(memory_ + at), request.headers.size()};
  return true;
}

bool KeptHead::keep(Request& request, std::string_view head) noexcept {
  const std::size_t fields = request.headers.size() * sizeof(Header);
  if (fields + head.size() > kBytes) return false;
  char* const text = memory_ + fields;
  memcpy(text, head.data(), head.size());
  text_ = {text, head.size()};
  const auto from = reinterpret_cast<std::uintptr_t>(head.data());
  // A view that is absent, or of the program's own text, stays.
  const auto move = [&](std::string_view& view) {
    const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(view.data()) - from;
    if (at <= head.size()) view = {text + at, view.size()};
  };
  auto* const to = reinterpret_cast<Header*>(memory_);
  memcpy(static_cast<void*>(to), request.headers.data(), fields);
  for (std::size_t i = 0; i < request.headers.size(); ++i) {
    move(to[i].name);
    move(to[i].value);
  }
  request.headers = {to, request.headers.size()};
  for (std::string_view* const view :
       {&request.method_text, &request.target, &request.path, &request.query, &request.authority, &request.if_match,
        &request.if_none_match, &request.if_modified_since, &request.if_unmodified_since, &request.if_range,
        &request.range}) {
    move(*view);
  }
  return true;
}

}  // namespace coir::http
