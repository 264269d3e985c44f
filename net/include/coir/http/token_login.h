#pragma once

// Pages for a person who knows a token: typed into a form once, and remembered by a cookie.
//
//   TokenLogin login("a-token-that-nobody-can-guess", "/board");
//   auto app = routes(get<"/board">([&](Exchange& exchange) {
//                       if (login.refuses(exchange)) return;
//                       exchange.respond(200, "text/html", login.admits(exchange.request()) ? "<p>news" : "<form ...");
//                     }),
//                     post<"/board">([&](Exchange& exchange) {
//                       if (login.refuses(exchange)) return;
//                       if (login.log_in(exchange) == TokenLogin::Verdict::admitted)
//                         exchange.respond(303, "text/plain", "", "Location: /board\r\n");
//                     }));

#include <coir/http/exchange.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace coir::http {

// TokenLogin admits whoever has sent the right token by a form. The cookie is `HttpOnly; SameSite=Strict`, over TLS `Secure`
// too, and ends with the browser. Its value is a key that the process draws at the first login: a restart, or log_out, ends
// all logins. From the third wrong token of a client address on, the answer to each is held back as CredentialStore does it.
//
// From several fibers and workers at once. Takes 1.2 KB of the heap.
class TokenLogin {
 public:
  static constexpr std::size_t kMostToken = 128;
  static constexpr std::size_t kMostPath = 64;

  // The token, of visible ASCII, and the path that the cookie is for outlive it. Without memory nobody is admitted.
  TokenLogin(std::string_view token, std::string_view path) noexcept;
  TokenLogin(const TokenLogin&) = delete;
  TokenLogin& operator=(const TokenLogin&) = delete;
  ~TokenLogin();

  // refuses answers 421 a request whose Host is no name of this machine (ServerOptions::allow_hosts), whatever its method,
  // and 403 one that a page of another origin has sent. False: it is neither, and not answered.
  [[nodiscard]] bool refuses(Exchange& exchange) noexcept;

  // admits tells whether a request brings the cookie.
  bool admits(const Request& request) noexcept;

  enum class Verdict : std::uint8_t {
    admitted,  // the cookie is in the head of the answer to come
    refused,   // a wrong token
    busy,      // too many tokens are being judged, or the kernel has no randomness after ten seconds: 503
    answered,  // no such form; it has been answered
  };

  // log_in reads the form of a POST and judges its field "token". It may wait, for content, after wrong tokens, and for
  // the kernel's first random numbers.
  Verdict log_in(Exchange& exchange) noexcept;

  // log_out ends all logins.
  void log_out() noexcept;

 private:
  struct State;

  bool send_cookie(Exchange& exchange) noexcept;

  const std::string_view token_, path_;
  State* state_;  // null: there was no memory
};

}  // namespace coir::http
