#pragma once

#include <pthread.h>

#include <cstdint>

#include <coir/atomic.h>
#include <coir/life_watch.h>

#include "base/line.h"

namespace coir {

// WatchThread is a thread beside the workers that looks at them again and again, also while all of them hang. It takes
// no signals, and keeps no deadlock from being reported.
class WatchThread {
 public:
  // Look returns after how many nanoseconds it is called again.
  using Look = std::int64_t (*)(void* context) noexcept;

  constexpr WatchThread() noexcept = default;

  // start starts the thread, which calls `look` at once. Returns 0, or an errno. stop returns when no call is in
  // progress any more; without a start it does nothing.
  int start(Look look, void* context) noexcept;
  void stop() noexcept;

 private:
  static void* run(void* self) noexcept;

  Look look_ = nullptr;
  void* context_ = nullptr;
  pthread_t thread_{};
  bool running_ = false;
  SharedAtomic<std::uint32_t> stop_{0};
};

// can_tell tells whether standard error takes some lines without waiting. A watch that waits for the reader of its lines
// would see nothing, and feed nothing; so it drops them.
bool can_tell() noexcept;

// tell_name gives the text of a line that begins with kNaming to `tell`; without one the line is written to standard error.
inline constexpr const char* kNaming = "coir: ";
void tell_name(Line& line, const LifeWatch::Tell& tell) noexcept;

}  // namespace coir
