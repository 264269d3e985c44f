#pragma once

#include <memory>
#include <type_traits>

#include <coir/atomic.h>

#include "schedule/worker.h"

namespace coir {

// Errand is a call that a plain thread has the worker of a single-worker build make for it: no other thread may touch
// there what fibers use. It lies on the thread's stack; the thread waits until the worker has made the call, on its own
// stack, when it looks around. A CrossThreadWakeup has one of its own, for which no thread waits.
struct Errand {
  void (*call)(void* argument);
  void* argument;
  Errand* next = nullptr;
  SharedAtomic<std::uint32_t> done{0};

  // run returns false, and has called nothing, where no run goes on.
  bool run() noexcept;
};

// by_worker has the worker call f if the caller is a plain thread beside the run of a single-worker build. False: the
// caller calls f itself.
//
//   void Event::set() noexcept {
//     if (by_worker([this] { set(); })) return;
template <class F>
bool by_worker(F&& f) noexcept {
  if constexpr (kManyWorkers) {
    return false;
  } else {
    if (this_worker() != nullptr) [[likely]]
      return false;
    Errand errand{[](void* closure) { (*static_cast<std::remove_reference_t<F>*>(closure))(); }, std::addressof(f)};
    return errand.run();
  }
}

}  // namespace coir
