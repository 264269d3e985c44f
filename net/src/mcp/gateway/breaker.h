#pragma once

#include <coir/deadline.h>
#include <coir/spinlock.h>

#include <cstdint>

namespace coir::mcp::detail {

// Breaker leaves a server alone that does not answer: after `most` failures in a row nothing is let through for `rest`,
// then one call, which decides. Any fiber or thread.
class Breaker {
 public:
  Breaker(std::uint32_t most, std::chrono::nanoseconds rest) noexcept : most_(most), rest_(rest) {}

  // let tells whether a call may go; whoever was let tells how it ended, or that it was given up.
  bool let() noexcept {
    const Locked locked(lock_);
    if (failures_ < most_) return true;
    if (trying_ || !again_.passed()) return false;
    trying_ = true;
    return true;
  }
  void succeeded() noexcept {
    const Locked locked(lock_);
    failures_ = 0;
    trying_ = false;
  }
  void failed() noexcept {
    const Locked locked(lock_);
    if (failures_ < most_) ++failures_;
    trying_ = false;
    if (failures_ == most_) again_ = Deadline::after(rest_);
  }
  void given_up() noexcept {
    const Locked locked(lock_);
    trying_ = false;
  }
  bool is_open() noexcept {
    const Locked locked(lock_);
    return failures_ == most_;
  }

 private:
  const std::uint32_t most_;
  const std::chrono::nanoseconds rest_;
  Spinlock lock_;
  std::uint32_t failures_ = 0;
  bool trying_ = false;
  Deadline again_ = Deadline::now();
};

}  // namespace coir::mcp::detail
