#pragma once

#include <coir/http/detail/route_call.h>
#include <coir/http/exchange.h>
#include <coir/http/request.h>
#include <coir/http/server.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

// A table of routes is a value that answers exchanges:
//
//   Store store;
//   auto app = routes(
//       get<"/items">([&](Exchange& exchange) { store.list(exchange); }),
//       get<"/items/{id}">([&](Exchange& exchange, int id) { store.show(exchange, id); }),
//       put<"/items/{id}", require_login>([&](Exchange& exchange, int id) { store.change(exchange, id); }),
//       get<"/files/{path...}">(files),
//       mount<"/admin">(admin_routes, require_bearer(is_admin)));
//   auto server = Server::create(answered_by(app, {.max_active = 64}));
//
// A handler is anything that can be called: with the exchange, and behind it each parameter of the pattern, in order, as
// std::string_view or as an integer. A path whose parameter is no such integer is 404. What has a name is kept by
// reference and outlives the server, as the table does; what has none is moved into the table. Handlers run on several
// workers at once.
//
// A pattern is a path, written decoded. "{name}" stands for one segment that is not empty; "{name...}" at the end for
// all that follows, which may be empty; a handler for such a pattern may take no parameters at all. Of several patterns
// that fit a path the more special one counts, text before "{name}" before "{name...}". Patterns are checked and sorted
// while compiling: two routes of a method that fit the same path, neither more special, do not compile.
//
// A path that fits no pattern is answered 404; one that fits, but has no route for the method, 405 with Allow. GET's
// routes answer HEAD, and OPTIONS is answered 204 with Allow where no route is for it, as is "OPTIONS *". A path is
// compared decoded, and as it is: with an empty segment ("//") or a dot segment ("." and "..", encoded too) inside, or
// with %2F, it fits nothing; with a slash at its end it fits patterns that have one, and "{name...}". Nothing is
// redirected.
//
// A middleware is called with (Exchange&, Next) and stands around handlers: it calls next(exchange), or answers itself
// and does not. One that is known while compiling stands behind the pattern, others behind the handler; the first that is
// named is the outermost. Nothing is allocated.
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

  // Line is the route as line kLine of this, the only one.
  template <std::size_t kLine>
  struct Line {
    static constexpr auto pattern = kPattern;
    static constexpr MethodSet methods = kMethods;
    static constexpr auto token = kToken;
    static constexpr Next::Call* call = Behind<OneRoute, handle>::call;
  };
};

// Mounted is a table with a prefix before its patterns, and middleware around its handlers.
template <Literal kPrefix, class Inner, class... Middleware>
struct Mounted {
  using Routes = std::remove_cvref_t<Inner>;
  static constexpr std::size_t kRoutes = Routes::kRoutes, kMiddleware = sizeof...(Middleware);

  [[no_unique_address]] Inner inner;
  [[no_unique_address]] ListOf<Middleware...> middleware;

  template <std::size_t kLine>
  static void handle(void* self, Exchange& exchange, const RouteParameters& parameters) {
    Routes& routes = static_cast<Mounted*>(self)->inner;
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

// Routes is a table of routes with its handlers. It answers an exchange by the route for its method and path.
template <class... Items>
class Routes {
 public:
  static constexpr std::size_t kRoutes = (0 + ... + Items::kRoutes);

  explicit Routes(Items&&... items) : items_{{std::move(items)}...} {}

  void operator()(Exchange& exchange) { detail::answer_by(table(), this, exchange); }

  // table is the routes in the order in which they are tried.
  static constexpr std::span<const Route> table() noexcept { return kSorted<Routes>.routes; }

  // Line is a route by its number, in the order in which they were named.
  template <std::size_t kLine>
  struct Line {
    static constexpr detail::Place place = detail::place_of<Items...>(kLine);
    using Item = typename detail::Nth<place.item, Items...>::Type;
    using Inner = typename Item::template Line<place.line>;

    static void call_item(void* routes, Exchange& exchange, const RouteParameters& parameters) {
      Inner::call(&detail::value_of<place.item>(static_cast<Routes*>(routes)->items_), exchange, parameters);
    }

    static constexpr auto pattern = Inner::pattern;
    static constexpr MethodSet methods = Inner::methods;
    static constexpr auto token = Inner::token;
    static constexpr Next::Call* call = call_item;
  };

 private:
  struct Sorted {
    Route routes[kRoutes];
  };
  template <std::size_t... I>
  static consteval auto sort(std::index_sequence<I...>) {
    Sorted sorted{};
    std::size_t size = 0;
    (detail::add_to(sorted.routes, size,
                    Route{Line<I>::methods, Line<I>::pattern.view(), Line<I>::call, Line<I>::token.view()}),
     ...);
    return sorted;
  }
  // A template, as the class is not complete yet.
  template <class Self>
  static constexpr auto kSorted = Self::sort(std::make_index_sequence<kRoutes>());

  detail::ListOf<Items...> items_;
};

// routes makes a table of routes and of other tables (mount).
template <class... Items>
Routes<Items...> routes(Items&&... items) {
  return Routes<Items...>(std::move(items)...);
}

namespace detail {

template <class Handler>
consteval bool check_route(std::string_view pattern) {
  constexpr std::size_t taken = kCount<RestOf<Handler>>;
  const std::size_t parameters = check_pattern(pattern);
  if (taken != parameters && (taken != 0 || !takes_the_rest(pattern))) {
    the_handler_takes_another_number_of_parameters();
  }
  return true;
}

template <MethodSet kMethods, Literal kToken, Literal kPattern, auto... kKnown, class Handler, class... Middleware>
constexpr auto make_route(Handler&& handler, Middleware&&... middleware) {
  static_assert(check_route<Handler>(kPattern.view()));
  return OneRoute<kMethods, kToken, kPattern, Kept<Handler>, Known<kKnown>..., Kept<Middleware>...>{
      std::forward<Handler>(handler), {{Known<kKnown>()}..., {std::forward<Middleware>(middleware)}...}};
}

}  // namespace detail

// These make a route of a pattern, middleware that is known while compiling, a handler, and other middleware.
template <detail::Literal kPattern, auto... kKnown, class Handler, class... Middleware>
constexpr auto get(Handler&& handler, Middleware&&... middleware) {
  return detail::make_route<method_set(Method::get), "", kPattern, kKnown...>(std::forward<Handler>(handler),
                                                                              std::forward<Middleware>(middleware)...);
}
template <detail::Literal kPattern, auto... kKnown, class Handler, class... Middleware>
constexpr auto head(Handler&& handler, Middleware&&... middleware) {
  return detail::make_route<method_set(Method::head), "", kPattern, kKnown...>(std::forward<Handler>(handler),
                                                                               std::forward<Middleware>(middleware)...);
}
template <detail::Literal kPattern, auto... kKnown, class Handler, class... Middleware>
constexpr auto post(Handler&& handler, Middleware&&... middleware) {
  return detail::make_route<method_set(Method::post), "", kPattern, kKnown...>(std::forward<Handler>(handler),
                                                                               std::forward<Middleware>(middleware)...);
}
template <detail::Literal kPattern, auto... kKnown, class Handler, class... Middleware>
constexpr auto put(Handler&& handler, Middleware&&... middleware) {
  return detail::make_route<method_set(Method::put), "", kPattern, kKnown...>(std::forward<Handler>(handler),
                                                                              std::forward<Middleware>(middleware)...);
}
template <detail::Literal kPattern, auto... kKnown, class Handler, class... Middleware>
constexpr auto patch(Handler&& handler, Middleware&&... middleware) {
  return detail::make_route<method_set(Method::patch), "", kPattern, kKnown...>(
      std::forward<Handler>(handler), std::forward<Middleware>(middleware)...);
}
template <detail::Literal kPattern, auto... kKnown, class Handler, class... Middleware>
constexpr auto del(Handler&& handler, Middleware&&... middleware) {
  return detail::make_route<method_set(Method::del), "", kPattern, kKnown...>(std::forward<Handler>(handler),
                                                                              std::forward<Middleware>(middleware)...);
}
template <detail::Literal kPattern, auto... kKnown, class Handler, class... Middleware>
constexpr auto options(Handler&& handler, Middleware&&... middleware) {
  return detail::make_route<method_set(Method::options), "", kPattern, kKnown...>(
      std::forward<Handler>(handler), std::forward<Middleware>(middleware)...);
}
// method is for one that has no name here, such as "PROPFIND".
template <detail::Literal kToken, detail::Literal kPattern, auto... kKnown, class Handler, class... Middleware>
constexpr auto method(Handler&& handler, Middleware&&... middleware) {
  static_assert(detail::is_other_method(kToken.view()),
                "a method is a token of 24 characters at most that has no function of its own");
  return detail::make_route<method_set(Method::other), kToken, kPattern, kKnown...>(
      std::forward<Handler>(handler), std::forward<Middleware>(middleware)...);
}
// any is for every method but TRACE and CONNECT.
template <detail::Literal kPattern, auto... kKnown, class Handler, class... Middleware>
constexpr auto any(Handler&& handler, Middleware&&... middleware) {
  return detail::make_route<kEveryMethod, "", kPattern, kKnown...>(std::forward<Handler>(handler),
                                                                   std::forward<Middleware>(middleware)...);
}

// mount is all routes of another table with `kPrefix` before their patterns and the middleware around their handlers.
template <detail::Literal kPrefix, auto... kKnown, class Inner, class... Middleware>
constexpr auto mount(Inner&& inner, Middleware&&... middleware) {
  static_assert(detail::check_pattern(kPrefix.view()) == 0 && !kPrefix.view().ends_with('/'),
                "a prefix has no parameters and no slash at its end");
  return detail::Mounted<kPrefix, detail::Kept<Inner>, detail::Known<kKnown>..., detail::Kept<Middleware>...>{
      std::forward<Inner>(inner), {{detail::Known<kKnown>()}..., {std::forward<Middleware>(middleware)}...}};
}

// Around is an answer with middleware around it.
template <class Answer, class... Middleware>
struct Around {
  static constexpr std::size_t kMiddleware = sizeof...(Middleware);

  [[no_unique_address]] Answer answer;
  [[no_unique_address]] detail::ListOf<Middleware...> middleware;

  static void handle(void* self, Exchange& exchange, const RouteParameters&) {
    static_cast<Around*>(self)->answer(exchange);
  }
  void operator()(Exchange& exchange) { detail::Behind<Around, handle>::call(this, exchange, {}); }
};

// around has middleware stand around all of an answer, what a table has no route for included.
template <auto... kKnown, class Answer, class... Middleware>
constexpr auto around(Answer&& answer, Middleware&&... middleware) {
  return Around<detail::Kept<Answer>, detail::Known<kKnown>..., detail::Kept<Middleware>...>{
      std::forward<Answer>(answer), {{detail::Known<kKnown>()}..., {std::forward<Middleware>(middleware)}...}};
}

}  // namespace coir::http
