#include "mcp/access/web_token.h"

#include <coir/json.h>
#include <string.h>

#include "http/text/base64.h"
#include "http/text/characters.h"
#include "mcp/message/message.h"

namespace coir::mcp {
namespace {

constexpr std::size_t kMostHeader = 512;

// check_header judges the first part.
std::expected<void, Error> check_header(std::string_view part) noexcept {
  if (part.size() > kMostHeader) return std::unexpected(ErrorCode::invalid);
  char room[kMostHeader + 3];
  const auto text = decode_base64url(part, room);
  if (!text) return std::unexpected(ErrorCode::invalid);
  const auto document = JsonDocument::parse(*text, {.max_bytes = kMostHeader, .max_depth = 4});
  if (!document) {
    const bool no_memory = document.error().error == ErrorCode::no_memory;
    return std::unexpected(no_memory ? ErrorCode::no_memory : ErrorCode::invalid);
  }
  const JsonView header = document->root();
  if (header.kind() != JsonKind::object || text_of(header.find("alg")) != "ES256") {
    return std::unexpected(ErrorCode::invalid);
  }
  // A critical extension is one that this reader does not know, `b64` of RFC 7797 among them.
  for (const auto [name, value] : header.members()) {
    if (name == "crit" || name == "b64") return std::unexpected(ErrorCode::invalid);
  }
  const auto type = header.find("typ");
  if (!type) return {};
  std::string_view name = text_of(type).value_or(std::string_view());
  constexpr std::string_view kPrefix = "application/";
  if (http::begins_ignoring_case(name, kPrefix)) name.remove_prefix(kPrefix.size());
  if (http::equals_ignoring_case(name, "jwt") || http::equals_ignoring_case(name, "at+jwt")) return {};
  return std::unexpected(ErrorCode::invalid);
}

}  // namespace

std::expected<std::string_view, Error> decode_base64url(std::string_view text, std::span<char> out) noexcept {
  const std::size_t whole = (text.size() + 3) / 4 * 4;
  if (whole > out.size()) return std::unexpected(ErrorCode::limit);
  for (std::size_t i = 0; i < whole; ++i) {
    const char c = i < text.size() ? text[i] : '=';
    if (i < text.size() && (c == '+' || c == '/' || c == '=')) return std::unexpected(ErrorCode::invalid);
    out[i] = c == '-' ? '+' : c == '_' ? '/' : c;
  }
  // Three bytes go where four characters were, which have been read by then.
  return http::decode_base64({out.data(), whole}, out);
}

std::expected<WebToken, Error> read_web_token(std::string_view token) noexcept {
  if (token.size() > kMostToken) return std::unexpected(ErrorCode::invalid);
  const std::size_t first = token.find('.');
  const std::size_t second = first == token.npos ? token.npos : token.find('.', first + 1);
  if (second == token.npos) return std::unexpected(ErrorCode::invalid);
  WebToken found{.claims = token.substr(first + 1, second - first - 1), .signed_part = token.substr(0, second)};
  char room[(sizeof found.signature + 2) / 3 * 4];
  constexpr std::size_t kSignatureText = (sizeof found.signature * 8 + 5) / 6;
  const std::string_view signature = token.substr(second + 1);
  if (signature.size() != kSignatureText) return std::unexpected(ErrorCode::invalid);
  const auto bytes = decode_base64url(signature, room);
  if (!bytes || bytes->size() != sizeof found.signature) return std::unexpected(ErrorCode::invalid);
  memcpy(found.signature, bytes->data(), sizeof found.signature);
  if (auto checked = check_header(token.substr(0, first)); !checked) return std::unexpected(checked.error());
  return found;
}

}  // namespace coir::mcp
