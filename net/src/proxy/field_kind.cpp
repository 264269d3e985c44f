#include "proxy/field_kind.h"

#include <coir/http/wire/chunked.h>
#include <coir/http/wire/response.h>

#include <algorithm>

#include "http/text/characters.h"

namespace coir::http {
namespace {

constexpr std::size_t kLongestTwin = 64;

// twin_of writes the name with `-` for `_`; names that are longer than any of interest are cut.
std::string_view twin_of(std::string_view name, char (&text)[kLongestTwin]) noexcept {
  const std::size_t size = std::min(name.size(), sizeof text);
  for (std::size_t at = 0; at < size; ++at) text[at] = name[at] == '_' ? '-' : name[at];
  return {text, size};
}

}  // namespace

FieldKind kind_of(std::string_view name) noexcept {
  using enum FieldKind;
  const char* const text = name.data();
  switch (name.size()) {
    case 2:
      return equals_ignoring_case(name, "TE") ? te : passed;
    case 3:
      return equals_ignoring_case(name, "Via") ? via : passed;
    case 4:
      return same_name(text, "host") ? host : same_name(text, "date") ? date : passed;
    case 5:
      // A program behind CGI would take it for its own proxy.
      return same_name(text, "proxy") ? hop : passed;
    case 6:
      return same_name(text, "expect") ? hop : passed;
    case 7:
      return same_name(text, "upgrade") ? upgrade : same_name(text, "trailer") ? trailer : passed;
    case 9:
      return same_name(text, "forwarded") ? forwarded : same_name(text, "x-real-ip") ? forwarded_other : passed;
    case 10:
      return same_name(text, "connection") ? connection : same_name(text, "keep-alive") ? hop : passed;
    case 14:
      return same_name(text, "content-length") || same_name(text, "http2-settings") ? hop : passed;
    case 15:
      if (same_name(text, "x-forwarded-for")) return forwarded_for;
      break;
    case 16:
      if (same_name(text, "proxy-connection")) return hop;
      if (same_name(text, "x-forwarded-host")) return forwarded_host;
      break;
    case 17:
      if (same_name(text, "transfer-encoding")) return hop;
      if (same_name(text, "x-forwarded-proto")) return forwarded_proto;
      break;
    case 18:
      if (same_name(text, "proxy-authenticate")) return hop;
      break;
    case 19:
      if (same_name(text, "proxy-authorization")) return hop;
      break;
    default:
      break;
  }
  return begins_ignoring_case(name, "X-Forwarded-") ? forwarded_other : passed;
}

bool names_any(std::string_view connection) noexcept {
  while (!connection.empty()) {
    const std::string_view entry = until(connection, ',');
    connection.remove_prefix(std::min(entry.size() + 1, connection.size()));
    const std::string_view token = trim(entry);
    if (token.empty() || equals_ignoring_case(token, "keep-alive") || equals_ignoring_case(token, "close")) continue;
    if (kind_of(token) == FieldKind::passed) return true;
  }
  return false;
}

bool is_named(std::span<const Header> fields, const Header& field, FieldKind kind) noexcept {
  // All other kinds have their own treatment, which nothing a peer says may change.
  if (kind != FieldKind::passed || equals_ignoring_case(field.name, "Authorization")) return false;
  return std::ranges::any_of(fields, [&](const Header& each) {
    return each.name.size() == 10 && equals_ignoring_case(each.name, "Connection") &&
           list_has_token(each.value, field.name);
  });
}

bool is_among(std::string_view name, std::span<const std::string_view> names) noexcept {
  return std::ranges::any_of(names, [&](std::string_view each) { return equals_ignoring_case(each, name); });
}

bool is_twin(std::span<const Header> fields, std::string_view name,
             std::span<const std::string_view> dropped) noexcept {
  char text[kLongestTwin];
  const std::string_view twin = twin_of(name, text);
  if (kind_of(twin) != FieldKind::passed || equals_ignoring_case(twin, "Authorization") || is_among(twin, dropped)) {
    return true;
  }
  char other[kLongestTwin];
  return std::ranges::any_of(fields, [&](const Header& each) {
    return each.name.data() != name.data() && each.name.size() == name.size() &&
           equals_ignoring_case(twin_of(each.name, other), twin);
  });
}

bool may_trail(std::string_view name) noexcept {
  constexpr std::string_view kNever[] = {"Authorization", "Cache-Control",   "Content-Encoding",
                                         "Content-Range", "Content-Type",    "Cookie",
                                         "Age",           "Expires",         "Location",
                                         "Max-Forwards",  "Pragma",          "Range",
                                         "Retry-After",   "Set-Cookie",      "Vary",
                                         "Warning",       "WWW-Authenticate"};
  return kind_of(name) == FieldKind::passed && name.find('_') == name.npos && !is_among(name, kNever) &&
         !begins_ignoring_case(name, "If-") && !begins_ignoring_case(name, "Access-Control-");
}

bool is_tunnel(std::string_view upgrade) noexcept {
  while (!upgrade.empty()) {
    const std::string_view entry = until(upgrade, ',');
    upgrade.remove_prefix(std::min(entry.size() + 1, upgrade.size()));
    const std::string_view name = trim(entry);
    if (begins_ignoring_case(name, "h2") || begins_ignoring_case(name, "HTTP/") || begins_ignoring_case(name, "TLS/")) {
      return false;
    }
  }
  return true;
}

std::string_view write_last_chunk(std::span<char> into, std::string_view trailers,
                                  std::span<const std::string_view> drops) noexcept {
  ResponseHead lines(into);
  lines.fixed("0\r\n");
  while (!trailers.empty()) {
    const std::string_view line = until(trailers, '\r');
    trailers.remove_prefix(std::min(line.size() + 1, trailers.size()));
    const std::string_view name = until(line, ':');
    if (!may_trail(name) || is_among(name, drops)) continue;
    lines.field(name, trim(after(line, std::min(name.size() + 1, line.size()))));
  }
  const std::string_view text = lines.finish();
  return text.empty() ? kLastChunk : text;
}

}  // namespace coir::http
