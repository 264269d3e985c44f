#pragma once

#include <coir/http/detail/route_call.h>
#include <coir/http/detail/route_pattern.h>
#include <coir/http/wire/request.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

// How a table of coir/http/routes.h is made of its items.
namespace coir::http {

// MethodSet is a set of methods, a bit for each.
using MethodSet = std::uint16_t;
constexpr MethodSet method_set(Method method) noexcept {
  return static_cast<MethodSet>(1u << static_cast<unsigned>(method));
}
inline constexpr MethodSet kEveryMethod = 0x7f | method_set(Method::other);  // but TRACE

// Route is one line of a table that has been sorted.
struct Route {
  MethodSet methods = 0;
  std::string_view pattern;  // a NUL stands behind it: reports name a handler's fiber by it
  Next::Call* call = nullptr;
  std::string_view token = {};  // with Method::other: the one that it is for; empty: all of them
};

namespace detail {

void answer_by(std::span<const Route> routes, void* holder, Exchange& exchange) noexcept;

// Literal is a text as a template's argument.
template <std::size_t kSize>
struct Literal {
  char text[kSize];

  consteval Literal(const char (&literal)[kSize]) {
    for (std::size_t i = 0; i < kSize; ++i) text[i] = literal[i];
  }
  constexpr std::string_view view() const noexcept { return {text, kSize - 1}; }
};

template <Literal kFirst, Literal kSecond>
inline constexpr auto kJoined = [] {
  char text[sizeof kFirst.text + sizeof kSecond.text - 1] = {};
  for (std::size_t i = 0; i + 1 < sizeof kFirst.text; ++i) text[i] = kFirst.text[i];
  for (std::size_t i = 0; i < sizeof kSecond.text; ++i) text[sizeof kFirst.text - 1 + i] = kSecond.text[i];
  return Literal<sizeof text>(text);
}();

// precedes tells whether a goes before b. A route for HEAD itself goes before one for GET that serves it too.
consteval bool precedes(const Route& a, const Route& b) {
  if (comes_before(a.pattern, b.pattern)) return true;
  return !comes_before(b.pattern, a.pattern) && a.methods == method_set(Method::head);
}

consteval bool is_other_method(std::string_view token) {
  for (const std::string_view each : {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT"}) {
    if (token == each) return false;
  }
  for (const char c : token) {
    const bool alphanumeric = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (!alphanumeric && std::string_view("!#$%&'*+-.^_`|~").find(c) == std::string_view::npos) return false;
  }
  return !token.empty() && token.size() <= 24;
}

consteval bool share_a_method(const Route& a, const Route& b) {
  const MethodSet both = a.methods & b.methods;
  if (both != method_set(Method::other)) return both != 0;
  return a.token.empty() || b.token.empty() || a.token == b.token;
}

consteval void add_to(Route* routes, std::size_t& size, const Route& route) {
  std::size_t at = size++;
  for (std::size_t i = 0; i < at; ++i) {
    if (share_a_method(routes[i], route) && conflict(routes[i].pattern, route.pattern)) {
      two_routes_answer_the_same_request();
    }
  }
  for (; at > 0 && precedes(route, routes[at - 1]); --at) routes[at] = routes[at - 1];
  routes[at] = route;
}

consteval bool takes_the_rest(std::string_view pattern) {
  return pattern.ends_with("...}");
}

// OneRoute is a route with its handler and the middleware around it.
template <MethodSet kMethods, Literal kToken, Literal kPattern, class Handler, class... Middleware>
struct OneRoute {
  static constexpr std::size_t kRoutes = 1, kMiddleware = sizeof...(Middleware);
  static constexpr std::size_t kParameters = kCount<RestOf<Handler>>;

  [[no_unique_address]] Handler handler;
  [[no_unique_address]] ListOf<Middleware...> middleware;

  static void handle(void* self, Exchange& exchange, const RouteParameters& parameters) {
    auto& handler = static_cast<OneRoute*>(self)->handler;
    call_handler(handler, exchange, parameters, RestOf<Handler>(), std::make_index_sequence<kParameters>());
  }
  std::string_view problem() const noexcept { return problem_of(handler); }

  // Line is the route as line kLine of this, the only one.
  template <std::size_t kLine>
  struct Line {
    static constexpr auto pattern = kPattern;
    static constexpr MethodSet methods = kMethods;
    static constexpr auto token = kToken;
    static constexpr Next::Call* call = Behind<OneRoute, handle>::call;
  };
};

// OnError is an item that is no route: how a table's errors look.
template <class Handler>
struct OnError {
  static constexpr std::size_t kRoutes = 0;

  [[no_unique_address]] Handler handler;
};
template <class Item>
inline constexpr bool kIsOnError = false;
template <class Handler>
inline constexpr bool kIsOnError<OnError<Handler>> = true;

// error_item is the number of a table's on_error, or how many items it has.
template <class... Items>
consteval std::size_t error_item() {
  static_assert((0 + ... + kIsOnError<Items>) <= 1, "a table has one on_error at most");
  std::size_t at = 0;
  for (const bool is : {kIsOnError<Items>..., true}) {
    if (is) break;
    ++at;
  }
  return at;
}

// Mounted is a table with a prefix before its patterns, and middleware around its handlers.
template <Literal kPrefix, class Inner, class... Middleware>
struct Mounted {
  using Routes = std::remove_cvref_t<Inner>;
  static constexpr std::size_t kRoutes = Routes::kRoutes, kMiddleware = sizeof...(Middleware);

  [[no_unique_address]] Inner inner;
  [[no_unique_address]] ListOf<Middleware...> middleware;

  std::string_view problem() const noexcept { return problem_of(inner); }

  template <std::size_t kLine>
  static void handle(void* self, Exchange& exchange, const RouteParameters& parameters) {
    Routes& routes = static_cast<Mounted*>(self)->inner;
    if (const auto look = routes.error_look()) exchange.answer_errors_by(look);
    Routes::template Line<kLine>::call(&routes, exchange, parameters);
  }

  template <std::size_t kLine>
  struct Line {
    static constexpr auto pattern = kJoined<kPrefix, Routes::template Line<kLine>::pattern>;
    static constexpr MethodSet methods = Routes::template Line<kLine>::methods;
    static constexpr auto token = Routes::template Line<kLine>::token;
    static constexpr Next::Call* call = Behind<Mounted, handle<kLine>>::call;
  };
};

// Place says which item of a list a line is in, and which line of that it is.
struct Place {
  std::size_t item = 0, line = 0;
};
template <class... Items>
consteval Place place_of(std::size_t line) {
  Place place{0, line};
  for (const std::size_t lines : {Items::kRoutes...}) {
    if (place.line < lines) break;
    place.line -= lines;
    ++place.item;
  }
  return place;
}

template <std::size_t kIndex, class First, class... Others>
struct Nth : Nth<kIndex - 1, Others...> {};
template <class First, class... Others>
struct Nth<0, First, Others...> {
  using Type = First;
};

}  // namespace detail

}  // namespace coir::http
