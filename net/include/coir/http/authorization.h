#pragma once

#include <coir/http/detail/route_call.h>
#include <coir/http/exchange.h>
#include <coir/http/request.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

namespace coir::http {

// same_secret compares what a client has sent with a secret, in a time that depends on the length of `given` alone.
bool same_secret(std::string_view given, std::string_view secret) noexcept;

// BasicCredentials are a name and a password by the Basic scheme (RFC 7617): without TLS everybody can read them.
struct BasicCredentials {
  std::string_view user;
  std::string_view password;

  // are compares both, in constant time: a wrong name takes as long as a wrong password.
  bool are(std::string_view wanted_user, std::string_view wanted_password) const noexcept;
};

// basic_credentials decodes a request's credentials into `memory`. Absent: there are none, they are malformed or hold
// controls, the field is there twice, or they do not fit.
std::optional<BasicCredentials> basic_credentials(const Request& request, std::span<char> memory) noexcept;

// bearer_token returns the token that a request brings by the Bearer scheme (RFC 6750), an absent view (data() ==
// nullptr) when there is none, it is malformed, or the field is there twice.
std::string_view bearer_token(const Request& request) noexcept;

// Realm is the name that a browser shows when it asks its user: visible text, checked while compiling.
class Realm {
 public:
  template <std::size_t kSize>
  consteval Realm(const char (&literal)[kSize]) : text_(literal, kSize - 1) {
    if (text_.empty()) a_realm_is_visible_text_without_quotes_and_backslashes();
    for (const char c : text_) {
      if (c < ' ' || c > '~' || c == '"' || c == '\\') a_realm_is_visible_text_without_quotes_and_backslashes();
    }
  }
  constexpr std::string_view text() const noexcept { return text_; }

 private:
  static void a_realm_is_visible_text_without_quotes_and_backslashes();

  std::string_view text_;
};

namespace detail {

void ask_for_basic(Exchange& exchange, std::string_view realm) noexcept;
void ask_for_bearer(Exchange& exchange, std::string_view realm) noexcept;

template <class Check>
struct BasicGate {
  static_assert(std::is_invocable_r_v<bool, Check&, const BasicCredentials&>, "a check takes what the client has sent");

  [[no_unique_address]] Check check;
  Realm realm;

  void operator()(Exchange& exchange, Next next) {
    opens(exchange) ? next(exchange) : ask_for_basic(exchange, realm.text());
  }

 private:
  // The credentials leave the stack before the handler comes.
  [[gnu::noinline]] bool opens(Exchange& exchange) {
    char memory[256];
    const auto credentials = basic_credentials(exchange.request(), memory);
    return credentials && check(*credentials);
  }
};

template <class Check>
struct BearerGate {
  static_assert(std::is_invocable_r_v<bool, Check&, std::string_view>, "a check takes what the client has sent");

  [[no_unique_address]] Check check;
  Realm realm;

  void operator()(Exchange& exchange, Next next) {
    const std::string_view token = bearer_token(exchange.request());
    token.data() != nullptr&& check(token) ? next(exchange) : ask_for_bearer(exchange, realm.text());
  }
};

}  // namespace detail

// require_basic is a middleware that lets a request through whose credentials pass the check, and answers others 401.
//
//   put<"/sensors/{name}">(change, require_basic([&](const BasicCredentials& given) {
//     return given.are("admin", hub.password());
//   }, "hub"))
//
// The credentials are valid while the check runs. User and password together have room for 255 bytes.
template <class Check>
constexpr detail::BasicGate<detail::Kept<Check>> require_basic(Check&& check, Realm realm = "coir") {
  return {std::forward<Check>(check), realm};
}

// require_bearer does the same with a token: bool(std::string_view), to be compared by same_secret.
template <class Check>
constexpr detail::BearerGate<detail::Kept<Check>> require_bearer(Check&& check, Realm realm = "coir") {
  return {std::forward<Check>(check), realm};
}

}  // namespace coir::http
