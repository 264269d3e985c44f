#include <coir/http/authorization.h>

#include "http/routing/credential_line.h"
#include "http/text/base64.h"
#include "http/text/characters.h"

namespace coir::http {
namespace {

// credentials_of returns what stands behind the scheme in a request's only Authorization field, an absent view when
// there is no such field, or another scheme.
std::string_view credentials_of(const Request& request, std::string_view scheme) noexcept {
  std::string_view found{};
  for (const Header& header : request.headers) {
    if (!equals_ignoring_case(header.name, "authorization")) continue;
    if (found.data() != nullptr) return {};
    found = header.value;
  }
  if (found.size() <= scheme.size() || !begins_ignoring_case(found, scheme) || found[scheme.size()] != ' ') return {};
  found = after(found, scheme.size());
  while (!found.empty() && found[0] == ' ') found.remove_prefix(1);
  return found;
}

// refuse answers 401. `end` follows the realm in the challenge.
void refuse(Exchange& exchange, std::string_view scheme, std::string_view realm, std::string_view end) noexcept {
  ResponseHead& head = exchange.start(401);
  head.fixed("WWW-Authenticate: ");
  head.fixed(scheme);
  head.fixed(" realm=\"");
  head.fixed(realm);
  head.fixed("\"");
  head.fixed(end);
  head.fixed("\r\n");
  static_cast<void>(exchange.begin_fixed(0));
}

}  // namespace

bool same_secret(std::string_view given, std::string_view secret) noexcept {
  std::size_t difference = given.size() ^ secret.size();
  const std::string_view other = secret.empty() ? std::string_view("", 1) : secret;
  std::size_t at = 0;
  for (const char c : given) {
    difference |= static_cast<unsigned char>(c ^ other[at]);
    ++at;
    at &= std::size_t{0} - static_cast<std::size_t>(at < other.size());
    // The compiler must not learn that a difference stays one.
    asm volatile("" : "+r"(difference), "+r"(at));
  }
  return difference == 0;
}

bool BasicCredentials::are(std::string_view wanted_user, std::string_view wanted_password) const noexcept {
  const bool user_is = same_secret(user, wanted_user);
  const bool password_is = same_secret(password, wanted_password);
  return static_cast<bool>(static_cast<unsigned>(user_is) & static_cast<unsigned>(password_is));
}

std::optional<BasicCredentials> basic_credentials(const Request& request, std::span<char> memory) noexcept {
  const auto text = decode_base64(credentials_of(request, "basic"), memory);
  if (!text || std::ranges::any_of(*text, [](char c) { return is(c, kFieldControl) || c == '\t'; })) return {};
  const std::string_view user = until(*text, ':');
  if (user.size() == text->size()) return {};
  return BasicCredentials{user, after(*text, user.size() + 1)};
}

std::string_view bearer_token(const Request& request) noexcept {
  const std::string_view token = credentials_of(request, "bearer");
  return is_bearer_token(token) ? token : std::string_view();
}

void detail::ask_for_basic(Exchange& exchange, std::string_view realm) noexcept {
  refuse(exchange, "Basic", realm, ", charset=\"UTF-8\"");
}

void detail::ask_for_bearer(Exchange& exchange, std::string_view realm) noexcept {
  const bool given = bearer_token(exchange.request()).data() != nullptr;
  refuse(exchange, "Bearer", realm, given ? ", error=\"invalid_token\"" : "");
}

}  // namespace coir::http
