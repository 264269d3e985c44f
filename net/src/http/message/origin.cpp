#include "http/message/origin.h"

#include "http/text/characters.h"

namespace coir::http {
namespace {

// without_port takes `port`, or a port without digits, off the end of an authority.
std::string_view without_port(std::string_view authority, std::string_view port) noexcept {
  for (const std::string_view end : {port, std::string_view(":")}) {
    if (authority.size() > end.size() && after(authority, authority.size() - end.size()) == end) {
      return first(authority, authority.size() - end.size());
    }
  }
  return authority;
}

// A plain request may be of a page that came by TLS, which a proxy has ended. The other way round there is no such proxy.
bool is_own(std::string_view origin, const Request& request, bool secure) noexcept {
  struct Scheme {
    std::string_view name, port;
  };
  constexpr Scheme kSchemes[] = {{"https://", ":443"}, {"http://", ":80"}};
  for (const auto& [name, port] : std::span(kSchemes).first(secure ? 1 : 2)) {
    if (origin.size() <= name.size() || !equals_ignoring_case(first(origin, name.size()), name)) continue;
    return equals_ignoring_case(without_port(after(origin, name.size()), port), without_port(request.authority, port));
  }
  return false;
}

}  // namespace

bool is_allowed_origin(const Request& request, bool secure, std::span<const std::string_view> allowed) noexcept {
  const Header* field = nullptr;
  for (const Header& line : request.headers) {
    if (!equals_ignoring_case(line.name, "origin")) continue;
    if (field != nullptr) return false;
    field = &line;
  }
  if (field == nullptr || is_own(field->value, request, secure)) return true;
  for (const std::string_view origin : allowed) {
    if (origin == "*" || equals_ignoring_case(origin, field->value)) return true;
  }
  return false;
}

}  // namespace coir::http
