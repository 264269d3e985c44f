#pragma once

#include <coir/http/detail/route_call.h>
#include <coir/http/exchange.h>
#include <coir/http/request.h>
#include <coir/http/server.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace coir::http {

// MethodSet is a set of methods, a bit for each.
using MethodSet = std::uint16_t;
constexpr MethodSet method_set(Method method) noexcept {
  return static_cast<MethodSet>(1u << static_cast<unsigned>(method));
}
inline constexpr MethodSet kEveryMethod = 0x7f | method_set(Method::other);  // but TRACE

// Route is one line of a table, made by the functions of coir::http::route.
struct Route {
  static constexpr std::size_t kRoutes = 1;

  MethodSet methods = 0;
  std::string_view pattern;  // a NUL stands behind it: reports name a handler's fiber by it
  Next::Call* call = nullptr;
  const char* context = nullptr;  // which type of context the handler wants, compared while compiling
  std::string_view token = {};    // with Method::other: the one that it is for; empty: all of them
};

// RouteTable is routes in the order in which they are tried.
template <std::size_t kSize>
struct RouteTable {
  static constexpr std::size_t kRoutes = kSize;

  Route routes[kSize];

  constexpr operator std::span<const Route>() const noexcept { return routes; }
};

// RouteMatch is what find_route found.
struct RouteMatch {
  std::uint16_t status = 0;      // 0 found; 404; 405; 400, 414: the path is malformed, or too long for `memory`
  MethodSet allowed = 0;         // with 405: the methods that the path has routes for
  std::string_view tokens[4];    // and as many of those without a name
  const Route* route = nullptr;  // when found
  RouteParameters parameters;    // their views lie in the path, or in `memory`
};

// find_route finds the route for a request's path, which is decoded into `memory` if it holds any escape. HEAD takes a
// route for GET. `token` is the method's text, looked at for Method::other only. Linear: some 10 ns for each route.
[[nodiscard]] RouteMatch find_route(std::span<const Route> routes, Method method, std::string_view path,
                                    std::span<char> memory, std::string_view token = {}) noexcept;

namespace detail {

void answer_by(std::span<const Route> routes, Exchange& exchange) noexcept;

template <auto& kTable>
void call_table(Exchange& exchange, const RouteParameters&) {
  answer_by(kTable, exchange);
}

template <std::size_t kSize>
struct Prefix {
  char text[kSize];

  consteval Prefix(const char (&literal)[kSize]) {
    for (std::size_t i = 0; i < kSize; ++i) text[i] = literal[i];
  }
};

template <auto kPrefix, auto& kTable, std::size_t kIndex>
struct Joined {
  static constexpr std::string_view pattern = kTable.routes[kIndex].pattern;
  static constexpr std::size_t size = sizeof kPrefix.text - 1;
  struct Text {
    char text[size + pattern.size() + 1];
  };
  static constexpr Text joined = [] {
    Text out{};
    for (std::size_t i = 0; i < size; ++i) out.text[i] = kPrefix.text[i];
    for (std::size_t i = 0; i < pattern.size(); ++i) out.text[size + i] = pattern[i];
    return out;
  }();
};

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
template <std::size_t kSize>
consteval void add_to(Route* routes, std::size_t& size, const RouteTable<kSize>& table) {
  for (const Route& route : table.routes) add_to(routes, size, route);
}

template <auto& kTable, auto... kMiddleware>
consteval const char* context_of_table() {
  const char* found = context_of<kMiddleware...>();
  for (const Route& route : kTable.routes) found = same_context(found, route.context);
  return found;
}

}  // namespace detail

// A table of routes is made, checked and sorted while compiling, and stands in read-only memory:
//
//   void list(Hub& hub, Exchange& exchange);
//   void show(Hub& hub, Exchange& exchange, int number);
//   void log(Exchange& exchange, Next next) { next(exchange); say(exchange.status()); }
//
//   constexpr auto kRoutes = route::table(
//       route::get<list>("/sensors"),
//       route::get<show>("/sensors/{number}"),
//       route::put<change, require_login>("/sensors/{number}"),
//       route::get<files>("/files/{path...}"),
//       route::method<purge>("PURGE", "/files/{path...}"),
//       route::mount<"/admin", kAdminRoutes, require_login>());
//
//   ServerOptions options;
//   route::serve<kRoutes, log>(options, hub);
//
// A handler is any callable that is known while compiling: a function, a lambda without captures, a member function of
// the context. It takes the exchange; before it, if it wants, the context by its type; behind it each parameter of the
// pattern, in order, as std::string_view or as an integer. A path whose parameter is no such integer is 404.
//
// A pattern is a path, written decoded. "{name}" stands for one segment that is not empty; "{name...}" at the end for
// all that follows, which may be empty. Of several patterns that fit a path the more special one counts, text before
// "{name}" before "{name...}". Two routes of a method that fit the same path, neither more special, do not compile.
//
// A path that fits no pattern is answered 404; one that fits, but has no route for the method, 405 with Allow. GET's
// routes answer HEAD, and OPTIONS is answered 204 with Allow where no route is for it, as is "OPTIONS *". A path is
// compared decoded, and as it is: with an empty segment ("//") or a dot segment ("." and "..", encoded too) inside, or
// with %2F, it fits nothing; with a slash at its end it fits patterns that have one, and "{name...}". Nothing is
// redirected.
//
// A middleware is a function around handlers: it takes (Exchange&, Next), and before them the context if it wants. It
// calls next(exchange), or answers itself and does not. The first that is named is the outermost. Nothing is allocated.
namespace route {

template <auto kHandler, auto... kMiddleware>
consteval Route on(MethodSet methods, std::string_view pattern) {
  using Rest = typename detail::Parts<std::remove_const_t<decltype(kHandler)>>::Rest;
  if (pattern.data()[pattern.size()] != '\0') detail::a_pattern_is_a_literal();
  if (detail::check_pattern(pattern) != detail::kCount<Rest>) detail::the_handler_takes_another_number_of_parameters();
  return {methods, pattern, detail::Behind<detail::call_handler<kHandler>, kMiddleware...>::call,
          detail::context_of<kHandler, kMiddleware...>()};
}

template <auto kHandler, auto... kMiddleware>
consteval Route get(std::string_view pattern) {
  return on<kHandler, kMiddleware...>(method_set(Method::get), pattern);
}
template <auto kHandler, auto... kMiddleware>
consteval Route head(std::string_view pattern) {
  return on<kHandler, kMiddleware...>(method_set(Method::head), pattern);
}
template <auto kHandler, auto... kMiddleware>
consteval Route post(std::string_view pattern) {
  return on<kHandler, kMiddleware...>(method_set(Method::post), pattern);
}
template <auto kHandler, auto... kMiddleware>
consteval Route put(std::string_view pattern) {
  return on<kHandler, kMiddleware...>(method_set(Method::put), pattern);
}
template <auto kHandler, auto... kMiddleware>
consteval Route patch(std::string_view pattern) {
  return on<kHandler, kMiddleware...>(method_set(Method::patch), pattern);
}
template <auto kHandler, auto... kMiddleware>
consteval Route del(std::string_view pattern) {
  return on<kHandler, kMiddleware...>(method_set(Method::del), pattern);
}
template <auto kHandler, auto... kMiddleware>
consteval Route options(std::string_view pattern) {
  return on<kHandler, kMiddleware...>(method_set(Method::options), pattern);
}
// method is for one that has no name here, such as "PROPFIND".
template <auto kHandler, auto... kMiddleware>
consteval Route method(std::string_view token, std::string_view pattern) {
  if (!detail::is_other_method(token)) detail::a_method_is_a_token_of_24_characters_that_has_no_function_of_its_own();
  Route route = on<kHandler, kMiddleware...>(method_set(Method::other), pattern);
  route.token = token;
  return route;
}
// any is for every method but TRACE and CONNECT.
template <auto kHandler, auto... kMiddleware>
consteval Route any(std::string_view pattern) {
  return on<kHandler, kMiddleware...>(kEveryMethod, pattern);
}

// mount is all routes of another table with `kPrefix` before their patterns and the middleware around their handlers.
template <detail::Prefix kPrefix, auto& kTable, auto... kMiddleware>
consteval auto mount() {
  constexpr std::string_view prefix(kPrefix.text, sizeof kPrefix.text - 1);
  if (detail::check_pattern(prefix) != 0 || prefix.back() == '/') {
    detail::a_prefix_has_no_parameters_and_no_slash_at_its_end();
  }
  return []<std::size_t... I>(std::index_sequence<I...>) {
    return RouteTable<sizeof...(I)>{{Route{
        kTable.routes[I].methods,
        {detail::Joined<kPrefix, kTable, I>::joined.text, sizeof detail::Joined<kPrefix, kTable, I>::joined.text - 1},
        detail::Behind<kTable.routes[I].call, kMiddleware...>::call,
        detail::same_context(kTable.routes[I].context, detail::context_of<kMiddleware...>()),
        kTable.routes[I].token}...}};
  }(std::make_index_sequence<std::size(kTable.routes)>());
}

// table makes a table of routes and of other tables (mount).
template <class... Items>
consteval auto table(const Items&... items) {
  constexpr std::size_t size = (0 + ... + Items::kRoutes);
  RouteTable<size> out{};
  std::size_t used = 0;
  (detail::add_to(out.routes, used, items), ...);
  return out;
}

// answer is the handler that answers by a table, with middleware around all of it, what has no route included.
template <auto& kTable, auto... kMiddleware>
void answer(Exchange& exchange) {
  detail::Behind<detail::call_table<kTable>, kMiddleware...>::call(exchange, {});
}

// serve has a server answer by a table. All handlers and middleware that want a context want this one's type, or it
// does not compile. The context outlives the server.
template <auto& kTable, auto... kMiddleware>
void serve(ServerOptions& options) noexcept {
  static_assert(detail::context_of_table<kTable, kMiddleware...>() == nullptr, "a handler wants a context");
  options.handler = answer<kTable, kMiddleware...>;
}
template <auto& kTable, auto... kMiddleware, class Context>
void serve(ServerOptions& options, Context& context) noexcept {
  static_assert(detail::context_of_table<kTable, kMiddleware...>() == nullptr ||
                    detail::context_of_table<kTable, kMiddleware...>() == detail::context_mark<Context>,
                "a handler wants another context");
  options.handler = answer<kTable, kMiddleware...>;
  options.context = &context;
}

}  // namespace route
}  // namespace coir::http
