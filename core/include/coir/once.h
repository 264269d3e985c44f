#pragma once

// The first caller makes something; all others wait for it.
//
//   Once opened;
//   auto outcome = opened.call([] { show("it is made"); }, deadline);      // a body may fail, too
//   if (!outcome) return complain(outcome.error());

#include <coir/port/needs_fibers.h>

#include <cstdint>
#include <expected>
#include <type_traits>
#include <utility>

#include <coir/atomic.h>
#include <coir/budget.h>
#include <coir/deadline.h>
#include <coir/detail/wait_list.h>
#include <coir/error.h>
#include <coir/spinlock.h>

namespace coir {

// Once does something one time, however many ask for it.
//
// The body's one successful run happens-before the return of every call().
class Once {
 public:
  constexpr Once() noexcept = default;
  Once(const Once&) = delete;
  Once& operator=(const Once&) = delete;

  // call runs `body`, or waits until the one that runs it is done. A body that fails counts as not done: its caller
  // gets the error, and the next in line runs its own. Fiber or thread. Errors: the body's; timed_out, cancelled,
  // unsupported (of a wait; the body itself is not limited).
  template <class F>
  [[nodiscard]] std::expected<void, Error> call(F&& body, Deadline deadline = Deadline::never()) {
    spend_budget();
    if (done()) return {};
    auto first = begin(deadline);
    if (!first) return std::unexpected(first.error());
    if (!*first) return {};
    if constexpr (std::is_void_v<std::invoke_result_t<F&> >) {
      body();
      end(true);
      return {};
    } else {
      std::expected<void, Error> outcome = body();
      end(outcome.has_value());
      return outcome;
    }
  }

  // done tells whether it has been done; what it did is then visible.
  bool done() const noexcept { return state_.load(std::memory_order_acquire) == State::done; }

 private:
  enum class State : std::uint8_t { fresh, running, done };

  // begin tells whether the caller is to run the body.
  std::expected<bool, Error> begin(Deadline deadline) noexcept;
  void end(bool succeeded) noexcept;

  Atomic<State> state_{State::fresh};  // changes under lock_
  Spinlock lock_;
  detail::WaitList waiters_;
};

}  // namespace coir
