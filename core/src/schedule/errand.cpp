#include "schedule/errand.h"

#include <coir/port/futex.h>

#include <utility>

#include "schedule/scheduler.h"
#include "schedule/visit.h"

namespace coir {

bool Errand::run() noexcept {
  const Visit visit;
  if (!visit) return false;
  visit->bring(*this);
  // acquire pairs with the release in run_errands: what the call did comes before.
  while (done.load(std::memory_order_acquire) == 0) port::futex_wait(done, 0, -1);
  return true;
}

void Scheduler::bring(Errand& errand) noexcept {
  // release pairs with the acquire in run_errands.
  errand.next = errands_.load(std::memory_order_relaxed);
  while (!errands_.compare_exchange_weak(errand.next, &errand, std::memory_order_release, std::memory_order_relaxed)) {
  }
  reactor.interrupt();
}

void Scheduler::run_errands() noexcept {
  if (errands_.load(std::memory_order_relaxed) == nullptr) [[likely]]
    return;
  Errand* brought = errands_.exchange(nullptr, std::memory_order_acquire);
  Errand* in_order = nullptr;
  while (brought != nullptr) brought = std::exchange(brought->next, std::exchange(in_order, brought));
  while (Errand* const errand = in_order) {
    in_order = errand->next;
    errand->call(errand->argument);
    // Once the word changes the thread may return and the errand be gone: it is woken by address alone.
    SharedAtomic<std::uint32_t>& done = errand->done;
    done.store(1, std::memory_order_release);
    port::futex_wake(done);
  }
}

}  // namespace coir
