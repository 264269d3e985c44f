#include <coir/http/wire/cookies.h>
#include <coir/http/wire/response.h>

#include "http/text/characters.h"

namespace coir::http {
namespace {

bool is_cookie_value(std::string_view text) noexcept {
  return std::ranges::all_of(
      text, [](char c) { return c > ' ' && c < 0x7f && c != '"' && c != ',' && c != ';' && c != '\\'; });
}

bool is_attribute_value(std::string_view text) noexcept {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c < 0x7f && c != ';'; });
}

// keeps_rules is RFC 6265bis, 4.1.3: browsers drop a cookie that breaks one, without a word.
bool keeps_rules(std::string_view name, const CookieOptions& options) noexcept {
  const bool host = begins_ignoring_case(name, "__Host-");
  if (host && (options.path != "/" || !options.domain.empty())) return false;
  const bool secure_only = host || begins_ignoring_case(name, "__Secure-") || options.same_site == SameSite::none;
  return options.secure || !secure_only;
}

}  // namespace

std::optional<Cookie> Cookies::next() noexcept {
  for (;;) {
    while (rest_.empty()) {
      if (headers_.empty()) return {};
      const Header& header = headers_.front();
      headers_ = headers_.subspan(1);
      if (equals_ignoring_case(header.name, "cookie")) rest_ = header.value;
    }
    const std::string_view pair = until(rest_, ';');
    rest_.remove_prefix(std::min(pair.size() + 1, rest_.size()));
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos) continue;
    const Cookie cookie = {trim(first(pair, equals)), trim(after(pair, equals + 1))};
    if (is_token(cookie.name)) return cookie;
  }
}

std::string_view cookie_value(const Request& request, std::string_view name) noexcept {
  Cookies cookies(request);
  while (const auto cookie = cookies.next()) {
    if (cookie->name == name) return cookie->value;
  }
  return {};
}

std::expected<std::string_view, Error> write_cookie(std::string_view name, std::string_view value,
                                                    const CookieOptions& options, std::span<char> out) noexcept {
  if (!is_token(name) || !is_cookie_value(value) || !is_attribute_value(options.path) ||
      !is_attribute_value(options.domain) || !keeps_rules(name, options)) {
    return std::unexpected(Error{ErrorCode::invalid});
  }
  ResponseHead text(out);  // appends as far as there is room
  text.fixed(name);
  text.fixed("=");
  text.fixed(value);
  if (options.max_age_s) {
    char digits[20];
    const std::int64_t age = std::max<std::int64_t>(*options.max_age_s, 0);
    text.fixed("; Max-Age=");
    text.fixed({digits, write_decimal(digits, static_cast<std::uint64_t>(age))});
  }
  if (!options.path.empty()) {
    text.fixed("; Path=");
    text.fixed(options.path);
  }
  if (!options.domain.empty()) {
    text.fixed("; Domain=");
    text.fixed(options.domain);
  }
  constexpr std::string_view sites[] = {"; SameSite=Lax", "; SameSite=Strict", "; SameSite=None"};
  text.fixed(sites[static_cast<std::size_t>(options.same_site)]);
  if (options.secure) text.fixed("; Secure");
  if (options.http_only) text.fixed("; HttpOnly");
  if (text.lines().empty()) return std::unexpected(Error{ErrorCode::limit});
  return text.lines();
}

}  // namespace coir::http
