#pragma once

// Cookies of a request and a response.
//
//   void remember(Exchange& exchange) {
//     char line[200];
//     auto cookie = write_cookie("session", "31", {.max_age_s = 3600, .secure = exchange.secure()}, line);
//     if (cookie) exchange.start(200).field("Set-Cookie", *cookie);
//   }

#include <coir/error.h>
#include <coir/http/wire/request.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string_view>

namespace coir::http {

// Cookie is one pair of a Cookie field, as it was sent: nothing is decoded, and quotes belong to the value.
struct Cookie {
  std::string_view name;
  std::string_view value;
};

// Cookies walks through the Cookie fields of a request (RFC 6265, 5.4). Pairs without '=' or with a name that is no
// token are skipped.
class Cookies {
 public:
  // The request outlives it.
  explicit Cookies(const Request& request) noexcept : headers_(request.headers) {}

  // next returns the next cookie, absent after the last.
  std::optional<Cookie> next() noexcept;

 private:
  std::span<const Header> headers_;  // that have not been looked at
  std::string_view rest_;            // of the field under way
};

// cookie_value returns the value of the first cookie called `name`, compared with case; an absent view (data() ==
// nullptr) when there is none. Browsers send the one of the longest path first.
std::string_view cookie_value(const Request& request, std::string_view name) noexcept;

enum class SameSite : std::uint8_t { lax, strict, none };

// CookieOptions tells a browser what it may do with a cookie. The defaults keep it from scripts and from other sites.
struct CookieOptions {
  std::optional<std::int64_t> max_age_s = {};  // absent: until the browser ends; 0 removes the cookie
  std::string_view path = "/";
  std::string_view domain{};  // absent: this host alone
  SameSite same_site = SameSite::lax;
  bool secure = false;  // over TLS only; SameSite::none and the names "__Secure-..." and "__Host-..." require it
  bool http_only = true;
};

// write_cookie writes the value of a Set-Cookie field into `out` (name, value, path and domain with 100 bytes more
// suffice) and returns it.
//
// Errors: limit (`out` is too small); invalid: the name is no token, the value holds anything but cookie-octets (RFC
// 6265, 4.1.1: no white space, quotes, commas, semicolons, backslashes and bytes over 126), path or domain holds a
// control character or ';', or the options break a rule of the name's prefix or of SameSite::none.
[[nodiscard]] std::expected<std::string_view, Error> write_cookie(std::string_view name, std::string_view value,
                                                                  const CookieOptions& options,
                                                                  std::span<char> out) noexcept;

}  // namespace coir::http
