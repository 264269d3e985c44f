#pragma once

namespace coir {

class Waiter;

namespace detail {

// WaitPlace is one waiter's place in a WaitLine, on the stack of who waits.
struct WaitPlace {
  Waiter* waiter = nullptr;
  WaitPlace* next = nullptr;
};

// WaitLine is who waits for one thing, first come first served. Its owner's lock guards it: a waiter stands in line
// from arm() until it is claimed, or has the lock and takes itself out.
class WaitLine {
 public:
  WaitLine() noexcept = default;
  WaitLine(const WaitLine&) = delete;
  WaitLine& operator=(const WaitLine&) = delete;

  bool empty() const noexcept { return first_ == nullptr; }
  void add(WaitPlace& place) noexcept;
  // remove does nothing when the place is no longer in line.
  void remove(WaitPlace& place) noexcept;

  // claim_first takes the first out whose wait nothing else has ended, and returns its place, or null when there is
  // none. What is written to the place under the lock, the waiter reads under the lock. `woken` becomes whom the caller
  // is to wake once the lock is gone, or null when that one goes on by itself.
  WaitPlace* claim_first(Waiter*& woken) noexcept;

 private:
  WaitPlace* first_ = nullptr;
  WaitPlace** last_ = &first_;
};

}  // namespace detail

}  // namespace coir
