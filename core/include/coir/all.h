#pragma once

// Several bodies at once, and all of their results.
//
//   auto both = all([] { return fetch("/a"); }, [] { return fetch("/b"); });
//   if (!both) return complain(both.error());
//   auto& [a, b] = *both;
//   show(a, b);

#include <coir/port/needs_fibers.h>

#include <cstddef>
#include <expected>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include <coir/detail/fiber_group.h>
#include <coir/nursery.h>

namespace coir {

namespace detail {

// Slot is where a body's value waits for the others; nothing is std::monostate.
template <class T>
using SlotValue = std::conditional_t<std::is_void_v<T>, std::monostate, T>;
template <class T>
using Slot = std::optional<SlotValue<T> >;

template <class F, class T>
std::expected<void, Error> fill(F& body, std::optional<T>& slot) {
  auto outcome = outcome_of(body);
  if (!outcome) return std::unexpected(outcome.error());
  if constexpr (std::is_void_v<ValueOf<F> >) {
    slot.emplace();
  } else {
    slot.emplace(*std::move(outcome));
  }
  return {};
}

}  // namespace detail

// all runs each body as a fiber of its own and returns their results in the order of the bodies. A body returns a
// value, nothing (its place is then a std::monostate), or a std::expected<T, Error>; the first that fails cancels the
// rest, which are waited for, and its error is returned. Nothing is allocated: results lie in the caller's frame.
//
// Other errors: cancelled and timed_out of the caller (all bodies have ended by then); limit and no_memory where no
// fiber can start; deadlock of a full nursery around it (coir/nursery.h); unsupported where nothing can be waited for
// (core/README.md tells where), or no runtime runs.
template <class... F>
[[nodiscard]] std::expected<std::tuple<detail::SlotValue<detail::ValueOf<F> >...>, Error> all(F&&... bodies) {
  std::tuple<detail::Slot<detail::ValueOf<F> >...> slots;
  detail::FiberGroup group(0);
  const auto start = [&](auto& body, auto& slot) { group.add([&body, &slot] { return detail::fill(body, slot); }); };
  const auto outcome = std::apply(
      [&](auto&... slot) {
        (start(bodies, slot), ...);
        return group.join([&] { return (... && slot.has_value()); });
      },
      slots);
  if (!outcome) return std::unexpected(outcome.error());
  return std::apply(
      [](auto&... slot) { return std::tuple<detail::SlotValue<detail::ValueOf<F> >...>(*std::move(slot)...); }, slots);
}

// all_of calls `body` with each of `items` as all does, at most options.limit at a time, and leaves what it returns in
// `results`, in the same order; without results the body returns nothing, or std::expected<void, Error>.
// Errors: invalid (there are fewer results than items); all's.
template <class T, std::size_t N, class R, std::size_t M, class F>
[[nodiscard]] std::expected<void, Error> all_of(std::span<T, N> items, std::span<R, M> results, F&& body,
                                                NurseryOptions options = {}) {
  if (results.size() < items.size()) return std::unexpected(Error(ErrorCode::invalid));
  Atomic<std::size_t> done{0};
  detail::FiberGroup group(options.limit);
  for (std::size_t i = 0; i < items.size() && !group.ended(); ++i) {
    group.add([&body, &item = items[i], &result = results[i], &done]() -> std::expected<void, Error> {
      auto call = [&] { return body(item); };
      auto outcome = detail::outcome_of(call);
      if (!outcome) return std::unexpected(outcome.error());
      result = *std::move(outcome);
      done.fetch_add(1, std::memory_order_relaxed);
      return {};
    });
  }
  return group.join([&] { return done.load(std::memory_order_relaxed) == items.size(); });
}
template <class T, std::size_t N, class F>
[[nodiscard]] std::expected<void, Error> all_of(std::span<T, N> items, F&& body, NurseryOptions options = {}) {
  Atomic<std::size_t> done{0};
  detail::FiberGroup group(options.limit);
  for (T& item : items) {
    if (group.ended()) break;
    group.add([&body, &item, &done]() -> std::expected<void, Error> {
      auto call = [&] { return body(item); };
      auto outcome = detail::outcome_of(call);
      if (outcome) done.fetch_add(1, std::memory_order_relaxed);
      return outcome;
    });
  }
  return group.join([&] { return done.load(std::memory_order_relaxed) == items.size(); });
}

}  // namespace coir
