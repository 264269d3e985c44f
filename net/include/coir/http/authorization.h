#pragma once

#include <coir/http/detail/route_call.h>
#include <coir/http/exchange.h>
#include <coir/http/request.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

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

namespace detail {

// Realm is the name that a browser shows when it asks its user.
template <std::size_t kSize>
struct Realm {
  char text[kSize];

  consteval Realm(const char (&literal)[kSize]) {
    for (std::size_t i = 0; i < kSize; ++i) text[i] = literal[i];
  }
  constexpr std::string_view view() const noexcept { return {text, kSize - 1}; }
};

constexpr bool is_realm(std::string_view text) noexcept {
  for (const char c : text) {
    if (c < ' ' || c > '~' || c == '"' || c == '\\') return false;
  }
  return !text.empty();
}

void ask_for_basic(Exchange& exchange, std::string_view realm) noexcept;
void ask_for_bearer(Exchange& exchange, std::string_view realm) noexcept;

// Checker<T, F>::Context is the context of a check that takes (T) or (Context&, T), void without one.
template <class T, class Arguments>
struct Checker {
  static_assert(sizeof(T*) == 0, "a check takes what the client has sent, and before it the context if it wants");
};
template <class T>
struct Checker<T, Types<T>> {
  using Context = void;
};
template <class T, class C>
struct Checker<T, Types<C&, T>> {
  using Context = C;
};
template <class T, auto kCheck>
using CheckerContext =
    typename Checker<T, typename Signature<std::remove_const_t<decltype(kCheck)>>::Arguments>::Context;

template <auto kCheck, class Context, class T>
bool passes(Exchange& exchange, T given) {
  if constexpr (std::is_void_v<Context>) {
    return kCheck(given);
  } else {
    return kCheck(exchange.context<Context>(), given);
  }
}

template <auto kCheck>
struct BasicGate {
  using Context = CheckerContext<const BasicCredentials&, kCheck>;

  // The credentials leave the stack before the handler comes.
  [[gnu::noinline]] static bool open(Exchange& exchange) {
    char memory[256];
    const auto credentials = basic_credentials(exchange.request(), memory);
    return credentials && passes<kCheck, Context, const BasicCredentials&>(exchange, *credentials);
  }
  static void ask(Exchange& exchange, std::string_view realm) noexcept { ask_for_basic(exchange, realm); }
};

template <auto kCheck>
struct BearerGate {
  using Context = CheckerContext<std::string_view, kCheck>;

  static bool open(Exchange& exchange) {
    const std::string_view token = bearer_token(exchange.request());
    return token.data() != nullptr && passes<kCheck, Context, std::string_view>(exchange, token);
  }
  static void ask(Exchange& exchange, std::string_view realm) noexcept { ask_for_bearer(exchange, realm); }
};

// Gate is a middleware that lets through what Kind::open says. Its context is that of the check.
template <class Kind, Realm kRealm, class Context = typename Kind::Context>
struct Gate {
  static_assert(is_realm(kRealm.view()), "a realm is visible text without quotes and backslashes");

  void operator()(Context&, Exchange& exchange, Next next) const {
    Kind::open(exchange) ? next(exchange) : Kind::ask(exchange, kRealm.view());
  }
};
template <class Kind, Realm kRealm>
struct Gate<Kind, kRealm, void> {
  static_assert(is_realm(kRealm.view()), "a realm is visible text without quotes and backslashes");

  void operator()(Exchange& exchange, Next next) const {
    Kind::open(exchange) ? next(exchange) : Kind::ask(exchange, kRealm.view());
  }
};

}  // namespace detail

// require_basic is a middleware that lets a request through whose credentials pass the check, and answers others 401.
//
//   bool is_admin(Hub& hub, const BasicCredentials& given) { return given.are("admin", hub.password()); }
//   ...
//   route::put<change, require_basic<is_admin, "hub">>("/sensors/{name}")
//
// The check takes the credentials, and before them the context if it wants; they are valid while it runs. User and
// password together have room for 255 bytes.
template <auto kCheck, detail::Realm kRealm = "coir">
inline constexpr detail::Gate<detail::BasicGate<kCheck>, kRealm> require_basic{};

// require_bearer does the same with a token: bool(Hub&, std::string_view), to be compared by same_secret.
template <auto kCheck, detail::Realm kRealm = "coir">
inline constexpr detail::Gate<detail::BearerGate<kCheck>, kRealm> require_bearer{};

}  // namespace coir::http
