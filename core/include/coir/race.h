#pragma once

// The first result wins; the other bodies are cancelled.
//
//   auto page = race([] { return fetch("http://a.example/"); },
//                    [] { return sleep(50ms).and_then([] { return fetch("http://b.example/"); }); });
//   if (page) show(*page);

#include <coir/port/needs_fibers.h>

#include <expected>
#include <optional>
#include <type_traits>
#include <utility>

#include <coir/atomic.h>
#include <coir/detail/fiber_group.h>

namespace coir {

namespace detail {

// Winner is decided once, by the first that offers an outcome.
template <class T>
class Winner {
 public:
  explicit Winner(FiberGroup& group) noexcept : group_(group) {}

  void offer(std::expected<T, Error>&& outcome) {
    if (decided_.exchange(true, std::memory_order_relaxed)) return;
    outcome_.emplace(std::move(outcome));
    group_.cancel("another was first");
  }
  void offer_failure(Error error) noexcept {
    if (!failed_.exchange(true, std::memory_order_relaxed)) failure_ = error;
  }

  // After the join, which orders what the children wrote.
  std::expected<T, Error> take(const std::expected<void, Error>& joined) {
    if (outcome_) return *std::move(outcome_);
    if (!joined) return std::unexpected(joined.error());
    if (failed_.load(std::memory_order_relaxed)) return std::unexpected(failure_);
    return std::unexpected(Error(ErrorCode::cancelled));
  }

 private:
  FiberGroup& group_;
  Atomic<bool> decided_{false};
  Atomic<bool> failed_{false};
  Error failure_;
  std::optional<std::expected<T, Error> > outcome_;
};

template <class... F>
using CommonValue = std::common_type_t<ValueOf<F>...>;

}  // namespace detail

// race runs each body as a fiber of its own and returns the outcome, value or error, of the first that ends. The others
// are cancelled, and have ended by the time that it returns. The bodies' values are of one type, or of types that have
// a common one.
//
// Errors: the bodies'; cancelled and timed_out of the caller; limit and no_memory where no fiber can start;
// unsupported where nothing can be waited for (core/README.md tells where), or no runtime runs.
template <class... F>
[[nodiscard]] std::expected<detail::CommonValue<F...>, Error> race(F&&... bodies) {
  using T = detail::CommonValue<F...>;
  detail::FiberGroup group(0);
  detail::Winner<T> winner(group);
  (group.add([&winner, &bodies] { winner.offer(detail::outcome_of(bodies)); }), ...);
  return winner.take(group.join());
}

// any is race for the first that succeeds: failures are passed over, and only when every body has failed is the first
// failure returned. Errors: as race.
template <class... F>
[[nodiscard]] std::expected<detail::CommonValue<F...>, Error> any(F&&... bodies) {
  using T = detail::CommonValue<F...>;
  detail::FiberGroup group(0);
  detail::Winner<T> winner(group);
  (group.add([&winner, &bodies] {
    std::expected<T, Error> outcome = detail::outcome_of(bodies);
    if (outcome) {
      winner.offer(std::move(outcome));
    } else {
      winner.offer_failure(outcome.error());
    }
  }),
   ...);
  return winner.take(group.join());
}

}  // namespace coir
