#include <coir/signal.h>

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include <coir/atomic.h>
#include <coir/budget.h>
#include <coir/wait.h>

#if !COIR_NO_ASYNC
#include <coir/fiber.h>
#endif

namespace coir {

namespace {

constexpr int kSignals = 64;
using Count = std::uint32_t;

// Seat holds the state of a caller of wait_signal, while it waits and until another caller needs the seat: which
// arrivals it has seen, so that it misses none between two calls. A signal handler may interrupt any thread, so
// the fields that it touches are atomic in every build; the others belong to the caller that holds the seat.
struct Seat {
  SharedAtomic<std::uint64_t> waits_for;  // bit n is signal n; 0: its caller does not wait
  // An eventfd and 1, while its caller waits; kept until another seat needs one. 0 is none, so that seats are all zeros
  // and take no room in the file.
  SharedAtomic<int> wakeup_and_1;
  std::uint64_t caller = 0;  // guarded by g_lock, as the next two
  std::uint64_t used = 0;    // when it was last taken: a count
  bool taken = false;
  std::uint64_t asked_for = 0;
  Count seen[kSignals] = {};

  int wakeup() const noexcept { return wakeup_and_1.load(std::memory_order_relaxed) - 1; }
  void take_wakeup_of(Seat& other) noexcept {
    wakeup_and_1.store(other.wakeup_and_1.exchange(0, std::memory_order_relaxed), std::memory_order_relaxed);
  }
};

constinit SharedAtomic<Count> g_arrived[kSignals] = {};  // how often each signal has arrived
constinit SharedAtomic<Count> g_taken[kSignals] = {};    // up to which arrival somebody has got it
constinit SharedAtomic<std::uint64_t> g_caught{0};
constinit SharedAtomic<int> g_wakeup{-1};
constinit SharedAtomic<std::uint64_t> g_rung{
    0};  // the signals that g_wakeup has been rung for since they were asked for
constinit SharedAtomic<std::uint64_t> g_asked{0};  // those that somebody has ever asked for
constinit Seat g_seats[kMostSignalWaiters];
constinit SharedAtomic<bool> g_lock{false};
constinit std::uint64_t g_uses = 0;  // guarded by g_lock

// Lock keeps callers apart; the handler takes no lock.
class Lock {
 public:
  Lock() noexcept {
    while (g_lock.exchange(true, std::memory_order_acquire)) sched_yield();
  }
  ~Lock() { g_lock.store(false, std::memory_order_release); }
};

void ring(int wakeup) noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(wakeup, &one, sizeof one);
}

bool silence(int wakeup) noexcept {
  std::uint64_t count;
  return read(wakeup, &count, sizeof count) > 0;
}

void ring_for(int number) noexcept {
  g_rung.fetch_or(std::uint64_t{1} << number, std::memory_order_seq_cst);
  ring(g_wakeup.load(std::memory_order_relaxed));
}

// silence_for makes g_wakeup silent for those signals, and rings again if it has been rung for others that somebody may
// poll for. One that nobody asks for does not keep a poller busy.
void silence_for(std::uint64_t wanted) noexcept {
  const std::uint64_t asked = g_asked.fetch_or(wanted, std::memory_order_relaxed);
  const int wakeup = g_wakeup.load(std::memory_order_relaxed);
  const bool silenced = silence(wakeup);
  // A handler sets its bit before it rings: what was silenced is seen here.
  const std::uint64_t others = g_rung.fetch_and(~wanted, std::memory_order_seq_cst) & asked & ~wanted;
  if (silenced && others != 0) ring(wakeup);
}

// Counted first, then rung: pairs with the caller, which shows that it waits first, and then looks at the counts.
void on_signal(int number) noexcept {
  const int saved = errno;
  g_arrived[number].fetch_add(1, std::memory_order_seq_cst);
  bool waited_for = false;
  for (const Seat& seat : g_seats) {
    if ((seat.waits_for.load(std::memory_order_seq_cst) >> number & 1) == 0) continue;
    ring(seat.wakeup());
    waited_for = true;
  }
  if (!waited_for) ring_for(number);
  errno = saved;
}

// caller_id tells fibers and plain threads apart.
std::uint64_t caller_id() noexcept {
#if !COIR_NO_ASYNC
  if (const std::uint64_t fiber = current().id(); fiber != 0) return fiber;
#endif
  return std::uint64_t{1} << 63 | static_cast<std::uint64_t>(gettid());
}

// sit finds the caller's seat, or takes the one that has not been used for longest. Signals that the caller has not asked
// for before count as seen up to the last arrival that any caller has taken. Without `waits` the seat needs no wakeup, so
// that the call works when no descriptor is left.
std::expected<Seat*, Error> sit(std::uint64_t wanted, bool waits) noexcept {
  const std::uint64_t caller = caller_id();
  const Lock hold;
  Seat* found = nullptr;
  for (Seat& seat : g_seats) {
    if (seat.taken) continue;
    if (seat.caller == caller) {
      found = &seat;
      break;
    }
    if (found == nullptr || seat.used < found->used) found = &seat;
  }
  if (found == nullptr) return std::unexpected(Error{ErrorCode::limit});
  // Only who waits needs a wakeup: it moves from a seat that is left, so that there are no more than ever wait at a
  // time. A handler that has read it before rings in vain.
  for (Seat& left : g_seats) {
    if (!waits || found->wakeup() >= 0) break;
    if (!left.taken) found->take_wakeup_of(left);
  }
  if (waits && found->wakeup() < 0) {
    const int wakeup = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (wakeup < 0) return std::unexpected(Error::from_errno(errno));
    found->wakeup_and_1.store(wakeup + 1, std::memory_order_relaxed);
  }
  if (found->caller != caller) found->asked_for = 0;
  for (std::uint64_t fresh = wanted & ~found->asked_for; fresh != 0; fresh &= fresh - 1) {
    const int number = __builtin_ctzll(fresh);
    found->seen[number] = g_taken[number].load(std::memory_order_acquire);
  }
  found->asked_for = wanted;
  found->caller = caller;
  found->used = ++g_uses;
  found->taken = true;
  return found;
}

bool has_arrived(const Seat& seat, int number) noexcept {
  return g_arrived[number].load(std::memory_order_seq_cst) != seat.seen[number];
}

// leave rings for what came too late for the seat's caller, and for nobody else.
void leave(Seat& seat) noexcept {
  seat.waits_for.store(0, std::memory_order_seq_cst);
  for (std::uint64_t left = seat.asked_for; left != 0; left &= left - 1) {
    const int number = __builtin_ctzll(left);
    if (has_arrived(seat, number)) ring_for(number);
  }
  const Lock hold;
  seat.taken = false;
}

// take returns one of the signals that have arrived since the caller last took it, or 0.
int take(Seat& seat) noexcept {
  for (std::uint64_t left = seat.asked_for; left != 0; left &= left - 1) {
    const int number = __builtin_ctzll(left);
    if (!has_arrived(seat, number)) continue;
    const Count arrived = g_arrived[number].load(std::memory_order_seq_cst);
    seat.seen[number] = arrived;
    Count taken = g_taken[number].load(std::memory_order_relaxed);
    // A caller that took a later arrival has stored a larger count.
    while (
        static_cast<std::int32_t>(arrived - taken) > 0 &&
        !g_taken[number].compare_exchange_weak(taken, arrived, std::memory_order_acq_rel, std::memory_order_relaxed)) {
    }
    return number;
  }
  return 0;
}

std::expected<int, Error> wait_in_seat(Seat& seat, Deadline deadline) noexcept {
  const int wakeup = seat.wakeup();
  if (deadline == Deadline::now()) {
    if (const int number = take(seat); number != 0) return number;
    return std::unexpected(Error{ErrorCode::timed_out});
  }
  seat.waits_for.store(seat.asked_for, std::memory_order_seq_cst);
  for (;;) {
    if (const int number = take(seat); number != 0) return number;
    if (silence(wakeup)) continue;  // a signal may have come between the two looks
    if (auto ready = wait(wakeup, Direction::readable, deadline); !ready) {
      // Its arrival was counted as waited for.
      if (const int number = take(seat); number != 0) return number;
      return std::unexpected(ready.error());
    }
  }
}

}  // namespace

std::expected<void, Error> catch_signals(std::initializer_list<int> signals) noexcept {
  const Lock hold;
  if (g_wakeup.load(std::memory_order_relaxed) < 0) {
    const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (fd < 0) return std::unexpected(Error::from_errno(errno));
    // The first that waits finds its wakeup there: the signal that ends a program is heard when clients have every descriptor.
    const int first = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (first < 0) {
      const int number = errno;
      close(fd);
      return std::unexpected(Error::from_errno(number));
    }
    g_seats[0].wakeup_and_1.store(first + 1, std::memory_order_relaxed);
    g_wakeup.store(fd, std::memory_order_relaxed);
  }
  for (const int number : signals) {
    if (number < 1 || number >= kSignals) return std::unexpected(Error{ErrorCode::invalid, EINVAL});
    const std::uint64_t bit = std::uint64_t{1} << number;
    if ((g_caught.load(std::memory_order_relaxed) & bit) != 0) continue;
    struct sigaction action{};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    if (sigaction(number, &action, nullptr) != 0) return std::unexpected(Error::from_errno(errno));
    g_caught.fetch_or(bit, std::memory_order_relaxed);
  }
  return {};
}

int signals_fd() noexcept {
  return g_wakeup.load(std::memory_order_relaxed);
}

std::expected<int, Error> wait_signal(std::initializer_list<int> signals, Deadline deadline) noexcept {
  spend_budget();
  if (auto caught = catch_signals(signals); !caught) return std::unexpected(caught.error());
  std::uint64_t wanted = 0;
  for (const int number : signals) wanted |= std::uint64_t{1} << number;
  silence_for(wanted);
  const auto seat = sit(wanted, deadline != Deadline::now());
  if (!seat) return std::unexpected(seat.error());
  const auto number = wait_in_seat(**seat, deadline);
  leave(**seat);
  return number;
}

}  // namespace coir
