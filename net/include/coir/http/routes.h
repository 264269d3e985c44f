#pragma once

// A table of routes: the handler for each request.
//
//   auto app = routes(
//       get<"/items">([](Exchange& exchange) { exchange.respond(200, "text/plain", "none\n"); }),
//       put<"/items/{id}">([](Exchange& exchange, int id) { exchange.respond_status(id == 0 ? 404 : 204); }));
//   return serve({.listen = ":8080"}, app);

#include <coir/http/detail/route_table.h>
#include <coir/http/exchange.h>
#include <coir/http/server.h>
#include <coir/http/wire/request.h>

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
// std::string_view or as an integer. A path whose parameter is no such integer is 404. A handler that is a named object
// is kept by reference and must outlive the server, as the table must; a temporary one is moved into the table.
// Handlers run on several workers at once.
//
// A pattern is a path, written decoded. "{name}" stands for one segment that is not empty; "{name...}" at the end for
// all that follows, which may be empty; a handler for such a pattern may take no parameters at all. If several patterns
// fit a path the more special one counts, text before "{name}" before "{name...}". Patterns are checked and sorted
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

// Routes is a table of routes with its handlers. It answers an exchange by the route for its method and path.
template <class... Items>
class Routes {
 public:
  static constexpr std::size_t kRoutes = (0 + ... + Items::kRoutes);

  explicit Routes(Items&&... items) : items_{{std::move(items)}...} {}

  void operator()(Exchange& exchange) { detail::answer_by(table(), this, exchange); }

  // error_look is how errors look: the handler of on_error, or empty. It refers to the table.
  Exchange::ErrorLook error_look() noexcept {
    if constexpr (kErrors < sizeof...(Items)) {
      return detail::value_of<kErrors>(items_).handler;
    } else {
      return {};
    }
  }
  // problem is that of the first answer that has one, such as Proxy::problem; empty: none has. serve asks for it.
  std::string_view problem() const noexcept { return problem(std::index_sequence_for<Items...>()); }

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
  static constexpr std::size_t kErrors = detail::error_item<Items...>();
  template <std::size_t... I>
  std::string_view problem(std::index_sequence<I...>) const noexcept {
    std::string_view first;
    static_cast<void>(((first = detail::problem_of(detail::value_of<I>(items_)), !first.empty()) || ...));
    return first;
  }

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

// on_error stands among the routes and decides how errors look, with the status and the headers as they would be:
//
//   auto app = routes(get<"/items/{id}">(show_item), on_error([](Exchange& exchange, int status) {
//     char text[60];
//     exchange.respond(status, "application/json", coir::format(text, "{\"status\":", status, "}\n"));
//   }));
//
// It is called for every error that coir answers itself: 404 and 405 of the table, 400, 413, 414 and their like of heads
// and content, 500 where a handler answers nothing; and for what a handler answers by respond_status, unless its
// fields are longer than Exchange::kAddedFieldBytes. It answers at
// once, without waiting. A mounted table's own decides for its handlers. The first table's decides for answers that come after
// the handler has returned (coir/http/proxy.h).
template <class Handler>
constexpr auto on_error(Handler&& handler) {
  static_assert(std::is_invocable_v<Handler&, Exchange&, int>, "on_error takes what is called with (Exchange&, int)");
  return detail::OnError<detail::Kept<Handler>>{std::forward<Handler>(handler)};
}

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
  Exchange::ErrorLook error_look() noexcept {
    if constexpr (requires { answer.error_look(); }) {
      return answer.error_look();
    } else {
      return {};
    }
  }
  std::string_view problem() const noexcept { return detail::problem_of(answer); }
};

// around has middleware stand around all of an answer, what a table has no route for included.
template <auto... kKnown, class Answer, class... Middleware>
constexpr auto around(Answer&& answer, Middleware&&... middleware) {
  return Around<detail::Kept<Answer>, detail::Known<kKnown>..., detail::Kept<Middleware>...>{
      std::forward<Answer>(answer), {{detail::Known<kKnown>()}..., {std::forward<Middleware>(middleware)}...}};
}

}  // namespace coir::http
