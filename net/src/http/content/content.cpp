#include <coir/http/content.h>

#include "http/text/characters.h"

namespace coir::http {

bool has_media_type(std::string_view content_type, std::string_view type) noexcept {
  return equals_ignoring_case(trim(until(content_type, ';')), type);
}

bool is_json_type(std::string_view content_type) noexcept {
  const std::string_view name = trim(until(content_type, ';'));
  constexpr std::string_view kSuffix = "+json";
  return equals_ignoring_case(name, "application/json") ||
         (name.size() > kSuffix.size() && equals_ignoring_case(name.substr(name.size() - kSuffix.size()), kSuffix));
}

std::expected<void, Error> require_media_type(Exchange& exchange, std::string_view type) noexcept {
  if (has_media_type(exchange.request().header("Content-Type"), type)) return {};
  exchange.start(415).field("Accept", type);
  static_cast<void>(exchange.begin_fixed(0));
  return std::unexpected(Error{ErrorCode::unsupported});
}

std::expected<std::string_view, Error> read_content(Exchange& exchange, std::span<char> into) noexcept {
  const Request& request = exchange.request();
  const auto too_long = [&]() -> std::unexpected<Error> {
    exchange.respond_status(413);
    return std::unexpected(Error{ErrorCode::limit});
  };
  if (request.framing == Framing::length && request.content_length > into.size()) return too_long();
  std::size_t size = 0;
  for (;;) {
    char beyond;
    const bool full = size == into.size();
    const auto got = exchange.read_body(full ? std::span<char>(&beyond, 1) : into.subspan(size));
    if (!got && got.error() == ErrorCode::end_of_stream) return std::string_view(into.data(), size);
    if (!got) return std::unexpected(got.error());
    if (full) return too_long();
    size += *got;
  }
}

}  // namespace coir::http
