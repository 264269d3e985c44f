#pragma once

#include <coir/config.h>

#if !COIR_NO_ASYNC
#include <coir/mutex.h>

#include <expected>
#endif

namespace coir {

// A Turn holds a TurnLock as long as it lives: a Mutex, by which fibers do something one after the other. Without
// fibers one thread serves everything, and there is nothing to hold. A Turn is false where it was cancelled before it
// came.
#if COIR_NO_ASYNC
struct TurnLock {};
struct Turn {
  explicit Turn(TurnLock&) noexcept {}
  explicit operator bool() const noexcept { return true; }
};
#else
using TurnLock = Mutex;
class Turn {
 public:
  explicit Turn(TurnLock& lock) noexcept : held_(lock.lock()) {}
  explicit operator bool() const noexcept { return held_.has_value(); }

 private:
  std::expected<Mutex::Guard, Error> held_;
};
#endif

}  // namespace coir
