#pragma once

#include <coir/http/exchange.h>
#include <coir/http/percent.h>

#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

#include <coir/http/detail/route_pattern.h>

// How the handlers and middleware of coir/http/routes.h are called with what their signatures ask for.
namespace coir::http {

// RouteParameters is what the parameters of a pattern stand for in a path, decoded, in order.
struct RouteParameters {
  std::string_view values[detail::kMostParameters];
  std::size_t count = 0;
};

// Next is what a middleware stands around: further middleware and the handler. It is valid while the middleware runs.
class Next {
 public:
  using Call = void(Exchange& exchange, const RouteParameters& parameters);

  Next(Call* call, const RouteParameters& parameters) noexcept : call_(call), parameters_(parameters) {}

  void operator()(Exchange& exchange) const { call_(exchange, parameters_); }

 private:
  Call* call_;
  const RouteParameters& parameters_;
};

namespace detail {

template <class... T>
struct Types {};

// Signature<F>::Arguments are the types that a function, a function object or a member function takes.
template <class F>
struct Signature : Signature<decltype(&F::operator())> {};
template <class R, class... A>
struct Signature<R (*)(A...)> {
  using Arguments = Types<A...>;
};
template <class R, class... A>
struct Signature<R (*)(A...) noexcept> : Signature<R (*)(A...)> {};
template <class R, class C, class... A>
struct Signature<R (C::*)(A...)> : Signature<R (*)(A...)> {
  using Class = C;
};
template <class R, class C, class... A>
struct Signature<R (C::*)(A...) const> : Signature<R (C::*)(A...)> {};
template <class R, class C, class... A>
struct Signature<R (C::*)(A...) noexcept> : Signature<R (C::*)(A...)> {};
template <class R, class C, class... A>
struct Signature<R (C::*)(A...) const noexcept> : Signature<R (C::*)(A...)> {};

// Parts<F>: what stands before the exchange is the context, void when nothing does; what stands behind it, the rest. A
// member function's object is its context.
template <class C, class Arguments>
struct Split {
  static_assert(sizeof(C*) == 0,
                "a handler takes (Exchange&, ...), (Context&, Exchange&, ...) or is a Context's member");
};
template <class... A>
struct Split<void, Types<Exchange&, A...>> {
  using Context = void;
  using Rest = Types<A...>;
};
template <class C, class... A>
struct Split<void, Types<C&, Exchange&, A...>> {
  using Context = C;
  using Rest = Types<A...>;
};
template <class C, class... A>
  requires(!std::is_void_v<C>)
struct Split<C, Types<Exchange&, A...>> {
  using Context = C;
  using Rest = Types<A...>;
};

template <class F>
struct Parts : Split<void, typename Signature<F>::Arguments> {};
template <class F>
  requires std::is_member_function_pointer_v<F>
struct Parts<F> : Split<typename Signature<F>::Class, typename Signature<F>::Arguments> {};

template <class Rest>
inline constexpr std::size_t kCount = 0;
template <class... A>
inline constexpr std::size_t kCount<Types<A...>> = sizeof...(A);

// invoke_with calls `kCallable` with its context, the exchange and `values`.
template <auto kCallable, class... Values>
void invoke_with(Exchange& exchange, Values... values) {
  using Callable = std::remove_const_t<decltype(kCallable)>;
  using Context = typename Parts<Callable>::Context;
  if constexpr (std::is_void_v<Context>) {
    kCallable(exchange, values...);
  } else if constexpr (std::is_member_function_pointer_v<Callable>) {
    (exchange.context<Context>().*kCallable)(exchange, values...);
  } else {
    kCallable(exchange.context<Context>(), exchange, values...);
  }
}

template <class T>
struct Parameter {
  static_assert(std::is_same_v<T, std::string_view> || (std::is_integral_v<T> && !std::is_same_v<T, bool>),
                "a parameter is taken as std::string_view or as an integer, by value");

  explicit Parameter(std::string_view text) noexcept {
    if constexpr (std::is_integral_v<T>) {
      const auto number = parse_integer(text);
      fits = number && std::in_range<T>(*number);
      if (fits) value = static_cast<T>(*number);
    } else {
      value = text;
    }
  }

  T value{};
  bool fits = true;
};

// call_typed hands over the parameters as the handler wants them; 404 where one is no such number.
template <auto kHandler, class... A>
void call_typed(Exchange& exchange, Parameter<A>... parameters) {
  if (!(parameters.fits && ...)) return exchange.respond_status(404);
  invoke_with<kHandler>(exchange, parameters.value...);
}

template <auto kHandler, class... A, std::size_t... I>
void unpack(Exchange& exchange, const RouteParameters& parameters, Types<A...>, std::index_sequence<I...>) {
  call_typed<kHandler, A...>(exchange, Parameter<A>(parameters.values[I])...);
}

template <auto kHandler>
void call_handler(Exchange& exchange, const RouteParameters& parameters) {
  using Rest = typename Parts<std::remove_const_t<decltype(kHandler)>>::Rest;
  unpack<kHandler>(exchange, parameters, Rest(), std::make_index_sequence<kCount<Rest>>());
}

// Behind<kCall, m...>::call is kCall with the middleware around it, the first outermost.
template <Next::Call* kCall, auto... kMiddleware>
struct Behind {
  static constexpr Next::Call* call = kCall;
};
template <Next::Call* kCall, auto kFirst, auto... kOthers>
struct Behind<kCall, kFirst, kOthers...> {
  static_assert(std::is_same_v<typename Parts<std::remove_const_t<decltype(kFirst)>>::Rest, Types<Next>>,
                "a middleware takes (Exchange&, Next) or (Context&, Exchange&, Next)");

  static void call(Exchange& exchange, const RouteParameters& parameters) {
    invoke_with<kFirst>(exchange, Next(Behind<kCall, kOthers...>::call, parameters));
  }
};

// context_mark<C> is an address that stands for the type C while compiling; that of void is null.
template <class C>
inline constexpr char kContextMark = 0;
template <class C>
inline constexpr const char* context_mark = &kContextMark<std::remove_const_t<C>>;
template <>
inline constexpr const char* context_mark<void> = nullptr;

// same_context returns the one context that all of the marks name, null when none names any.
template <class... Marks>
consteval const char* same_context(Marks... marks) {
  const char* found = nullptr;
  for (const char* mark : {static_cast<const char*>(nullptr), static_cast<const char*>(marks)...}) {
    if (mark == nullptr) continue;
    if (found != nullptr && found != mark) a_handler_has_another_context();
    found = mark;
  }
  return found;
}

template <auto... kCallables>
consteval const char* context_of() {
  return same_context(context_mark<typename Parts<std::remove_const_t<decltype(kCallables)>>::Context>...);
}

}  // namespace detail
}  // namespace coir::http
