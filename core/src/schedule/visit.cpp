#include "schedule/visit.h"

#include "schedule/scheduler.h"

namespace coir {

namespace {

// closed | how many fibers were brought, modulo 2^23 | how many bring one now | how many visit, those included
constexpr std::uint64_t kVisitor = 1, kVisitors = (std::uint64_t{1} << 20) - 1;
constexpr std::uint64_t kBringer = std::uint64_t{1} << 20, kBringers = kVisitors << 20;
constexpr std::uint64_t kBrought = std::uint64_t{1} << 40, kBroughts = ((std::uint64_t{1} << 23) - 1) << 40;
constexpr std::uint64_t kClosed = std::uint64_t{1} << 63;

constinit SharedAtomic<std::uint64_t> g_door{kClosed};

bool enter_as(std::uint64_t more, std::uint64_t brought) noexcept {
  // acquire: a caller that finds it closed sees all that the run did.
  std::uint64_t word = g_door.load(std::memory_order_acquire);
  for (;;) {
    if ((word & kClosed) != 0) return false;
    const std::uint64_t next = (word & ~kBroughts) | ((word + brought) & kBroughts);
    // seq_cst: one order with close_unless_brought, and with the sums that is_quiescent reads before it.
    if (g_door.compare_exchange_weak(word, next + more, std::memory_order_seq_cst, std::memory_order_acquire))
      return true;
  }
}

}  // namespace

namespace door {

void open() noexcept {
  g_door.fetch_and(~kClosed, std::memory_order_seq_cst);
}

std::uint64_t seen() noexcept {
  return g_door.load(std::memory_order_seq_cst);
}

bool close_unless_brought(std::uint64_t seen) noexcept {
  std::uint64_t word = g_door.load(std::memory_order_seq_cst);
  do {
    // A visitor that was on its way then may have pushed since.
    if (((word | seen) & kBringers) != 0 || ((word ^ seen) & kBroughts) != 0) return false;
  } while (!g_door.compare_exchange_weak(word, word | kClosed, std::memory_order_seq_cst));
  return true;
}

// acquire pairs with the release in leave: what a visitor did comes before what follows.
bool close() noexcept {
  return (g_door.fetch_or(kClosed, std::memory_order_seq_cst) & kVisitors) == 0;
}

bool enter() noexcept {
  return enter_as(kVisitor, 0);
}

bool enter_with_fiber() noexcept {
  return enter_as(kVisitor + kBringer, kBrought);
}

void enter_again() noexcept {
  g_door.fetch_add(kVisitor, std::memory_order_relaxed);
}

void leave() noexcept {
  g_door.fetch_sub(kVisitor, std::memory_order_release);
}

// seq_cst: before the look at who sleeps.
void brought() noexcept {
  g_door.fetch_sub(kBringer, std::memory_order_seq_cst);
}

}  // namespace door

Visit::Visit() noexcept : scheduler_(nullptr), visits_(false) {
  if (const Worker* const worker = this_worker(); worker != nullptr) {
    scheduler_ = &worker->scheduler();
  } else if (Scheduler* const isolated = Scheduler::isolated_here(); isolated != nullptr) {
    scheduler_ = isolated;
  } else if (door::enter()) {
    visits_ = true;
    scheduler_ = Scheduler::of_process();
  }
}

}  // namespace coir
