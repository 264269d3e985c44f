#pragma once

#include <coir/http/detail/route_pattern.h>
#include <coir/http/exchange.h>
#include <coir/http/wire/query.h>

#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

// How the handlers and middleware of coir/http/routes.h are kept, and called with what their signatures ask for.
namespace coir::http {

// RouteParameters is what the parameters of a pattern stand for in a path, decoded, in order.
struct RouteParameters {
  std::string_view values[detail::kMostParameters];
  std::size_t count = 0;
};

// Next is what a middleware stands around: further middleware and the handler. It is valid while the middleware runs.
class Next {
 public:
  using Call = void(void* routes, Exchange& exchange, const RouteParameters& parameters);

  Next(Call* call, void* routes, const RouteParameters& parameters) noexcept
      : call_(call), routes_(routes), parameters_(parameters) {}

  void operator()(Exchange& exchange) const { call_(routes_, exchange, parameters_); }

 private:
  Call* call_;
  void* routes_;
  const RouteParameters& parameters_;
};

namespace detail {

template <class... T>
struct Types {};

// Signature<F>::Arguments are the types that a function or a function object takes.
template <class F>
struct Signature : Signature<decltype(&F::operator())> {};
template <class R, class... A>
struct Signature<R (*)(A...)> {
  using Arguments = Types<A...>;
};
template <class R, class... A>
struct Signature<R (*)(A...) noexcept> : Signature<R (*)(A...)> {};
template <class R, class C, class... A>
struct Signature<R (C::*)(A...)> : Signature<R (*)(A...)> {};
template <class R, class C, class... A>
struct Signature<R (C::*)(A...) const> : Signature<R (*)(A...)> {};
template <class R, class C, class... A>
struct Signature<R (C::*)(A...) noexcept> : Signature<R (*)(A...)> {};
template <class R, class C, class... A>
struct Signature<R (C::*)(A...) const noexcept> : Signature<R (*)(A...)> {};

// BehindExchange<Arguments>::Rest are the types behind the exchange.
template <class Arguments>
struct BehindExchange {
  static_assert(sizeof(Arguments*) == 0, "a handler takes (Exchange&, ...)");
};
template <class... A>
struct BehindExchange<Types<Exchange&, A...>> {
  using Rest = Types<A...>;
};
template <class F>
using RestOf = typename BehindExchange<typename Signature<std::decay_t<F>>::Arguments>::Rest;

template <class Rest>
inline constexpr std::size_t kCount = 0;
template <class... A>
inline constexpr std::size_t kCount<Types<A...>> = sizeof...(A);

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
template <class Handler, class... A>
void call_typed(Handler& handler, Exchange& exchange, Parameter<A>... parameters) {
  if (!(parameters.fits && ...)) return exchange.respond_status(404);
  handler(exchange, parameters.value...);
}

template <class Handler, class... A, std::size_t... I>
void call_handler(Handler& handler, Exchange& exchange, const RouteParameters& parameters, Types<A...>,
                  std::index_sequence<I...>) {
  call_typed<Handler, A...>(handler, exchange, Parameter<A>(parameters.values[I])...);
}

// Kept<T> is a T that a table keeps: by reference what has a name, by value what has none.
template <class T>
using Kept = std::conditional_t<std::is_lvalue_reference_v<T>, T, std::remove_cvref_t<T>>;

// problem_of is what is wrong with an answer, or with one inside it, in words; empty: nothing. Every answer that has a
// problem() is asked.
template <class Answer>
std::string_view problem_of(const Answer& answer) noexcept {
  if constexpr (requires { std::string_view(answer.problem()); }) {
    return answer.problem();
  } else {
    return {};
  }
}

// Known is a middleware that is known while compiling.
template <auto kMiddleware>
struct Known {
  void operator()(Exchange& exchange, Next next) const { kMiddleware(exchange, next); }
};

// Leaves keeps values of different types, by number.
template <std::size_t kIndex, class T>
struct Leaf {
  [[no_unique_address]] T value;
};
template <class Numbers, class... T>
struct Leaves;
template <std::size_t... I, class... T>
struct Leaves<std::index_sequence<I...>, T...> : Leaf<I, T>... {};
template <class... T>
using ListOf = Leaves<std::index_sequence_for<T...>, T...>;

template <std::size_t kIndex, class T>
T& value_of(Leaf<kIndex, T>& leaf) noexcept {
  return leaf.value;
}
template <std::size_t kIndex, class T>
const T& value_of(const Leaf<kIndex, T>& leaf) noexcept {
  return leaf.value;
}

// Behind<Holder, kInner, kAt>::call is kInner behind the middleware of the Holder, from number kAt on.
template <class Holder, Next::Call* kInner, std::size_t kAt = 0>
struct Behind {
  static void call(void* holder, Exchange& exchange, const RouteParameters& parameters) {
    if constexpr (kAt == Holder::kMiddleware) {
      kInner(holder, exchange, parameters);
    } else {
      auto& middleware = value_of<kAt>(static_cast<Holder*>(holder)->middleware);
      static_assert(
          std::is_same_v<typename Signature<std::decay_t<decltype(middleware)>>::Arguments, Types<Exchange&, Next>>,
          "a middleware takes (Exchange&, Next)");
      middleware(exchange, Next(Behind<Holder, kInner, kAt + 1>::call, holder, parameters));
    }
  }
};

}  // namespace detail
}  // namespace coir::http
