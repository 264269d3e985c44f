#include <coir/pressure.h>

#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include <coir/atomic.h>
#include <coir/budget.h>
#include <coir/deadline.h>

namespace coir {

namespace {

// g_giving is held while the list is walked or changed. A relief makes system calls meanwhile: only one that changes the
// list waits for it, and the holder does not leave its thread.
constinit Atomic<bool> g_giving{false};
constinit Relief* g_reliefs = nullptr;
constinit Atomic<std::uint32_t> g_pressure{1};  // the number of the pressure that is, or comes next
constinit Atomic<bool> g_line_written{false};   // a line was written in it
constinit Atomic<bool> g_eased{false};          // the total has sunk since a step was taken
constinit Atomic<std::int64_t> g_latest_ns{0};  // when a step was taken last

// A want that comes again within this time is the same one.
constexpr std::int64_t kCalmNs = 10'000'000'000;

// Hold keeps the list as it is while it is changed.
class [[nodiscard]] Hold {
 public:
  Hold() noexcept {
    // acquire pairs with the previous holder's release.
    while (g_giving.exchange(true, std::memory_order_acquire)) sched_yield();
  }
  ~Hold() { g_giving.store(false, std::memory_order_release); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
};

bool fits(const Account& account, std::size_t bytes) noexcept {
  return account.fits(bytes) && Ledger::total().fits(bytes);
}

// begin_another has each step write its line again.
void begin_another() noexcept {
  if (g_line_written.exchange(false, std::memory_order_relaxed)) g_pressure.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

constinit PressureStep Pressure::caches(0, "coir: memory is short: caches are given back\n");

void Pressure::add(Relief& relief) noexcept {
  Hold hold;
  // Kept in the order of the steps, so that one walk serves them all.
  Relief** link = &g_reliefs;
  while (*link != nullptr && (*link)->step_->rank_ <= relief.step_->rank_) link = &(*link)->next_;
  relief.next_ = *link;
  *link = &relief;
}

void Pressure::remove(Relief& relief) noexcept {
  Hold hold;
  for (Relief** link = &g_reliefs; *link != nullptr; link = &(*link)->next_) {
    if (*link != &relief) continue;
    *link = relief.next_;
    return;
  }
}

bool Pressure::charge(Account& account, std::size_t bytes) noexcept {
  if (account.charge(bytes)) [[likely]]
    return true;
  return make_room(account, bytes) && account.charge(bytes);
}

bool Pressure::make_room(const Account& account, std::size_t bytes) noexcept {
  // Another thread is making room: its gain may serve both, and the next attempt comes soon.
  if (g_giving.exchange(true, std::memory_order_acquire)) return fits(account, bytes);
  // A relief sends farewells to those it gives up, which spends budget. A yield here would keep g_giving held while another
  // fiber of this worker waits for it.
  const detail::BudgetAside no_yield;
  for (Relief* relief = g_reliefs; relief != nullptr && !fits(account, bytes); relief = relief->next_) {
    const std::size_t wanted = std::max(account.lacks(bytes), Ledger::total().lacks(bytes));
    if (relief->give_(relief->context_, wanted) != 0) took(*relief->step_);
  }
  g_giving.store(false, std::memory_order_release);
  return fits(account, bytes);
}

void Pressure::took(PressureStep& step) noexcept {
  step.taken_.fetch_add(1, std::memory_order_relaxed);
  const std::int64_t now_ns = monotonic_ns();
  const std::int64_t latest_ns = g_latest_ns.exchange(now_ns, std::memory_order_relaxed);
  // If nobody has asked since, the pressure ends here.
  if (g_eased.exchange(false, std::memory_order_relaxed) && now_ns - latest_ns >= kCalmNs) begin_another();
  const std::uint32_t now = g_pressure.load(std::memory_order_relaxed);
  if (step.told_.load(std::memory_order_relaxed) == now || step.told_.exchange(now, std::memory_order_relaxed) == now) {
    return;
  }
  g_line_written.store(true, std::memory_order_relaxed);
  // A pipe without a reader must not stop the worker that makes room.
  pollfd entry = {.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (poll(&entry, 1, 0) != 1 || (entry.revents & POLLOUT) == 0) return;
  [[maybe_unused]] const ssize_t n = write(STDERR_FILENO, step.line_, __builtin_strlen(step.line_));
}

bool Pressure::eased() noexcept {
  const Account& total = Ledger::total();
  const std::size_t ceiling = total.ceiling();
  if (total.used() > ceiling - ceiling / 16) return false;
  if (!g_line_written.load(std::memory_order_relaxed)) return true;
  g_eased.store(true, std::memory_order_relaxed);
  if (monotonic_ns() - g_latest_ns.load(std::memory_order_relaxed) >= kCalmNs) begin_another();
  return true;
}

}  // namespace coir
