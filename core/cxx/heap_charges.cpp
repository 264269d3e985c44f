#include "heap_charges.h"

#include <coir/heap.h>
#include <coir/pressure.h>

#include <cstdint>
#include <utility>

#include "failure.h"

#if !COIR_NO_ASYNC
#include <pthread.h>
#include <unistd.h>

#include "schedule/scheduler.h"
#include "schedule/worker.h"
#endif

namespace coir {

namespace account {
constinit Account heap("heap");
}  // namespace account

namespace {

constexpr std::size_t kBatch = 4096;
constexpr std::size_t kMostCredit = 2 * kBatch;

// HeapCredit is what a thread has charged and not handed out. Neither its address nor its value is kept across a park:
// nothing here parks.
struct HeapCredit {
  std::size_t bytes;
  std::size_t most;  // kMostCredit once the thread's end will give the credit back; 0 before, and after
};

#if COIR_NO_ASYNC
constinit HeapCredit t_credit{0, kMostCredit};

void give_back_at_end() noexcept {}
constexpr bool owns_ledger() noexcept {
  return true;
}
#else
constinit thread_local HeapCredit t_credit{0, 0};
constinit pthread_once_t g_once = PTHREAD_ONCE_INIT;
constinit pthread_key_t g_key{};
constinit bool g_has_key = false;  // written once, before pthread_once returns

void end_thread(void*) noexcept {
  t_credit.most = 0;
  enter_heap_charges();
}

// give_back_at_end has the thread's end enter its credit. Destructors that run after ours may allocate and free: then
// it is arranged anew.
void give_back_at_end() noexcept {
  if (t_credit.most != 0) return;
  pthread_once(&g_once, [] { g_has_key = pthread_key_create(&g_key, &end_thread) == 0; });
  if (g_has_key && pthread_setspecific(g_key, &t_credit) == 0) t_credit.most = kMostCredit;
}

// owns_ledger tells whether the calling thread may touch the ledger: any, or in single-worker builds the worker's, and
// the process's first while there is no run.
bool owns_ledger() noexcept {
  if (kManyWorkers || this_worker() != nullptr) return true;
  return Scheduler::of_process() == nullptr && getpid() == gettid();
}
#endif

// In single-worker builds other threads add their charges here, less their refunds, until the ledger's own thread
// enters the sum. Only the ledger and this together count all blocks: a block may be freed on one side and charged on
// the other.
constinit SharedAtomic<std::ptrdiff_t> g_elsewhere{0};

// enter_others enters what lies elsewhere, less what this thread gives back, as one change.
void enter_others(std::size_t given = 0) noexcept {
  std::ptrdiff_t bytes = -static_cast<std::ptrdiff_t>(given);
  if (!kManyWorkers && g_elsewhere.load(std::memory_order_relaxed) != 0) {
    bytes += g_elsewhere.exchange(0, std::memory_order_relaxed);
  }
  if (bytes < 0) {
    account::heap.refund(static_cast<std::size_t>(-bytes));
  } else if (bytes > 0 && !Pressure::charge(account::heap, static_cast<std::size_t>(bytes))) {
    fail_allocation("bytes that other threads have allocated", static_cast<std::size_t>(bytes));
  }
}

// take charges `least`, and up to `spare` more where that is free of pressure. It returns what it charged, or 0.
std::size_t take(std::size_t least, std::size_t spare) noexcept {
  if (!owns_ledger()) {
    g_elsewhere.fetch_add(static_cast<std::ptrdiff_t>(least + spare), std::memory_order_relaxed);
    return least + spare;
  }
  enter_others();
  const std::size_t both = least + spare;
  if (account::heap.fits(both) && Ledger::total().fits(both) && account::heap.charge(both)) return both;
  return Pressure::charge(account::heap, least) ? least : 0;
}

void give(std::size_t bytes) noexcept {
  if (!owns_ledger()) {
    g_elsewhere.fetch_sub(static_cast<std::ptrdiff_t>(bytes), std::memory_order_relaxed);
    return;
  }
  enter_others(bytes);
}

// A relief may free blocks, and so change the credit, while room is made.
[[gnu::noinline]] bool charge_more(std::size_t bytes) noexcept {
  if (bytes > PTRDIFF_MAX - kMostCredit) return false;
  give_back_at_end();
  while (t_credit.bytes < bytes) {
    const std::size_t taken = take(bytes - t_credit.bytes, t_credit.most / 2);
    if (taken == 0) return false;
    t_credit.bytes += taken;
  }
  t_credit.bytes -= bytes;
  return true;
}

[[gnu::noinline]] void refund_more() noexcept {
  give_back_at_end();
  if (t_credit.bytes <= t_credit.most) return;
  const std::size_t kept = t_credit.most / 2;
  give(std::exchange(t_credit.bytes, kept) - kept);
}

}  // namespace

bool charge_heap(std::size_t bytes) noexcept {
  if (t_credit.bytes < bytes) [[unlikely]]
    return charge_more(bytes);
  t_credit.bytes -= bytes;
  return true;
}

void refund_heap(std::size_t bytes) noexcept {
  t_credit.bytes += bytes;
  if (t_credit.bytes > t_credit.most) [[unlikely]]
    refund_more();
}

void enter_heap_charges() noexcept {
  const std::size_t rest = std::exchange(t_credit.bytes, 0);
  if (rest != 0 || g_elsewhere.load(std::memory_order_relaxed) != 0) give(rest);
}

}  // namespace coir
