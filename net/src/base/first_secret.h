#pragma once

#include <coir/atomic.h>
#include <coir/deadline.h>
#include <coir/spinlock.h>

#include <cstddef>
#include <span>
#include <string_view>

namespace coir {

// FirstSecret is a key that is drawn when it is first needed: a board that has just started has no random numbers yet.
// It is wiped at its end. From several fibers and threads at once.
class FirstSecret {
 public:
  static constexpr std::size_t kBytes = 32;

  FirstSecret() noexcept = default;
  FirstSecret(const FirstSecret&) = delete;
  FirstSecret& operator=(const FirstSecret&) = delete;
  ~FirstSecret();

  // draw has the secret there. It waits for the kernel's first random numbers as await_randomness does. False: there are none by
  // the deadline, or the caller was cancelled.
  [[nodiscard]] bool draw(Deadline deadline = Deadline::after(std::chrono::seconds(10))) noexcept;

  // view is the secret once draw has returned true. Not beside forget.
  std::string_view view() const noexcept { return {secret_, kBytes}; }
  // copy copies it; false if it is not there.
  [[nodiscard]] bool copy(std::span<char, kBytes> into) noexcept;
  // forget has the next draw make another.
  void forget() noexcept;

 private:
  Spinlock lock_;
  Atomic<bool> drawn_ = false;
  char secret_[kBytes] = {};
};

}  // namespace coir
