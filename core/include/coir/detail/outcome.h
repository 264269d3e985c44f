#pragma once

#include <expected>
#include <type_traits>

#include <coir/error.h>

namespace coir::detail {

// Outcome is how a body's result travels: a body that returns std::expected<T, Error> may fail; any other result T is
// one that cannot. Either way it arrives as std::expected<T, Error>.
template <class R>
struct Outcome {
  using Value = R;
  static constexpr bool kMayFail = false;
};
template <class T>
struct Outcome<std::expected<T, Error>> {
  using Value = T;
  static constexpr bool kMayFail = true;
};

template <class R>
inline constexpr bool kMayFail = Outcome<R>::kMayFail;
template <class F>
using ValueOf = typename Outcome<std::remove_cvref_t<std::invoke_result_t<F&>>>::Value;
template <class F>
using OutcomeOf = std::expected<ValueOf<F>, Error>;

// outcome_of calls the body.
template <class F>
OutcomeOf<F> outcome_of(F& body) {
  if constexpr (kMayFail<std::invoke_result_t<F&>>) {
    return body();
  } else if constexpr (std::is_void_v<std::invoke_result_t<F&>>) {
    body();
    return {};
  } else {
    return OutcomeOf<F>(std::in_place, body());
  }
}

// failure_of calls the body and keeps nothing but its error.
template <class F>
std::expected<void, Error> failure_of(F& body) {
  if constexpr (kMayFail<std::invoke_result_t<F&>>) {
    if (auto outcome = body(); !outcome) return std::unexpected(outcome.error());
  } else {
    static_cast<void>(body());
  }
  return {};
}

}  // namespace coir::detail
