#include <coir/select.h>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "join.h"
#include "wait_round.h"

namespace coir::detail {

namespace {

constexpr std::size_t kThreadFds = 15;

// rotation is where a select starts to look, so that no case is always the first.
std::uint32_t rotation() noexcept {
  if (Worker* const worker = this_worker(); worker != nullptr) return worker->random();
  static constinit thread_local std::uint32_t turn = 0;
  return turn++;
}

short events_of(Direction direction) noexcept {
  return direction == Direction::readable ? POLLIN : POLLOUT;
}

// SelectingThread is a thread that waits for descriptors and to be claimed at once: in poll(2), for the descriptors and
// for an eventfd of its own.
class SelectingThread : public Waiter {
 public:
  SelectingThread() noexcept : Waiter(&wake_thread, 0), bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~SelectingThread() {
    if (bell_ >= 0) ::close(bell_);
  }
  SelectingThread(const SelectingThread&) = delete;
  SelectingThread& operator=(const SelectingThread&) = delete;

  bool usable() const noexcept { return bell_ >= 0; }

  // park fills in what is ready of `entries`; the last of them is kept for the eventfd.
  WakeReason park(std::span<pollfd> entries, Deadline deadline) noexcept {
    entries.back() = {.fd = bell_, .events = POLLIN, .revents = 0};
    if (commit()) {
      while (awake_.load(std::memory_order_acquire) == 0) {
        const int ready = poll(entries.data(), entries.size(), deadline.remaining_ms());
        if (ready > 0 && entries.back().revents == 0) {
          if (claim(WakeReason::ready) != Claim::lost) break;
        } else if (ready <= 0 && deadline.passed()) {
          if (claim(WakeReason::timed_out) != Claim::lost) break;
        }
        // Otherwise somebody else has won, and is at the bell or about to be.
      }
    }
    return reason();
  }

 private:
  // The thread leaves only once awake_ is set: the bell is not closed before it has rung.
  static void wake_thread(Waiter& waiter) noexcept {
    auto& self = static_cast<SelectingThread&>(waiter);
    const std::uint64_t one = 1;
    static_cast<void>(!::write(self.bell_, &one, sizeof one));
    self.awake_.store(1, std::memory_order_release);
  }

  int bell_;
  std::atomic<std::uint32_t> awake_{0};
};

}  // namespace

// Selection is one select. It goes
//   look       try each case in turn, from a random one on; the first that is ready ends it
//   line up    under all locks of channels and events, see that still none of them is ready, and stand in every line
//   show       to the descriptors and the fibers, without locks; one that is ready by now claims the caller for itself
//   park       until one of them, the timer or a cancellation claims the caller
//   withdraw   from all that did not win
// While the caller looks it is in no line and not armed: two selects that meet on a channel never wait for each other's
// claim. All locks are taken together, in the order of their addresses.
struct Selection {
  Case* cases;
  std::size_t count;
  Deadline deadline;
  Case* timer = nullptr;  // the one with the earliest time, if that is before the deadline
  Case* otherwise = nullptr;
  Case* first_locked = nullptr;
  std::size_t descriptors = 0;

  using Kind = Case::Kind;
  using Outcome = std::expected<Selected, Error>;

  Outcome won(const Case& one, bool closed = false) const noexcept {
    return Selected{static_cast<std::size_t>(&one - cases), closed};
  }
  static Outcome failed(Error error) noexcept { return std::unexpected(error); }

  static ChannelCore& channel(const Case& one) noexcept { return *static_cast<ChannelCore*>(one.object_); }
  static Event& event(const Case& one) noexcept { return *static_cast<Event*>(one.object_); }
  static FiberControl* fiber(const Case& one) noexcept { return static_cast<FiberControl*>(one.object_); }

  // Kinds of cases that stand in a WaitList.
  static bool lines_up(const Case& one) noexcept { return one.kind_ <= Kind::event; }
  static WaitList& line(const Case& one) noexcept {
    if (one.kind_ == Kind::event) return event(one).waiters_;
    return one.kind_ == Kind::send ? channel(one).senders_ : channel(one).receivers_;
  }
  static Spinlock& lock(const Case& one) noexcept {
    return one.kind_ == Kind::event ? event(one).lock_ : channel(one).lock_;
  }

  Outcome run() noexcept {
    prepare();
    for (;;) {
      const std::uint32_t start = count != 0 ? rotation() % static_cast<std::uint32_t>(count) : 0;
      // What costs a system call to ask is asked when nothing is waited for, and where the look starts, lest what is
      // always ready leaves it no turn. Else its news are waited for.
      bool thoroughly = otherwise != nullptr || (count != 0 && !lines_up(cases[start]) && line_is_ready());
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t at = start + i;
        if (auto outcome = look(cases[at < count ? at : at - count], thoroughly)) return *outcome;
        thoroughly = otherwise != nullptr;
      }
      if (otherwise != nullptr) return won(*otherwise);
      if (deadline.ns() <= 0) return failed({ErrorCode::timed_out});
      if (auto outcome = wait()) return *outcome;
    }
  }

  // prepare finds what concerns all cases.
  void prepare() noexcept {
    for (Case& one : std::span(cases, count)) {
      if (one.kind_ == Kind::timer) {
        if (one.deadline_ <= (timer != nullptr ? timer->deadline_ : deadline)) timer = &one;
      } else if (one.kind_ == Kind::otherwise) {
        otherwise = &one;
      } else if (one.kind_ == Kind::descriptor) {
        ++descriptors;
      }
    }
  }

  // look ends the select with `one` if that is ready.
  std::optional<Outcome> look(Case& one, bool thoroughly) noexcept {
    switch (one.kind_) {
      case Kind::send:
      case Kind::receive: {
        const auto done = one.kind_ == Kind::send ? channel(one).send(one.slot, Deadline::now())
                                                  : channel(one).receive(one.slot, Deadline::now(), true);
        if (done) return won(one);
        if (done.error() == ErrorCode::timed_out) return {};
        if (done.error() == ErrorCode::closed) return won(one, true);
        return failed(done.error());
      }
      case Kind::event: {
        Locked hold(event(one).lock_);  // as Event::wait
        if (event(one).is_set()) return won(one);
        return {};
      }
      case Kind::descriptor:
        if (running_fiber() != nullptr && running_fiber()->worker->scheduler().reactor.take(one.fd_, one.direction_)) {
          return won(one);
        }
        if (thoroughly) {
          pollfd entry{.fd = one.fd_, .events = events_of(one.direction_), .revents = 0};
          if (poll(&entry, 1, 0) > 0) return won(one, (entry.revents & POLLNVAL) != 0);
        }
        return {};
      case Kind::ended:
        if (has_ended(one)) return won(one);
        return {};
      case Kind::timer:
        if (thoroughly && one.deadline_.passed()) return won(one);
        return {};
      case Kind::otherwise:
        return {};
    }
    return {};
  }

  static bool has_ended(const Case& one) noexcept {
    FiberControl* const target = fiber(one);
    if (target == nullptr || target->id.load(std::memory_order_acquire) != one.id_) return true;
    return ends(target->join.load(std::memory_order_acquire));
  }

  // wait does the rest; nothing when a channel or an event became ready on the way, and is to be looked at again.
  std::optional<Outcome> wait() noexcept {
    if (FiberControl* const self = running_fiber(); self != nullptr) [[likely]] {
      if (is_cancelled(self)) return failed(error_of(WakeReason::cancelled));
      WaitRound round(*self);
      if (!line_up(round, [self] { arm(self); })) return {};
      // Counted before it can be woken: settle must not find a fiber that waits for nothing.
      const auto counted = static_cast<std::int64_t>(descriptors);
      bump(self->worker->counters.fd_waits, counted);
      Case* own = nullptr;
      const Error error = show(*self, &self->worker->scheduler().reactor, own);
      WakeReason reason;
      if (own != nullptr) {
        reason = self->reason();
      } else {
        reason = park(self, WaitKind::select, static_cast<std::int64_t>(count), patience());
      }
      Outcome outcome = withdraw(round, reason, own, error, &self->worker->scheduler().reactor);
      bump(self->worker->counters.fd_waits, -counted);
      return outcome;
    }
    if (this_worker() != nullptr || !kManyWorkers) return failed({ErrorCode::unsupported});
    return descriptors == 0 ? wait_on_thread() : poll_on_thread();
  }

  [[gnu::noinline]] std::optional<Outcome> wait_on_thread() noexcept {
    ThreadWaiter thread;
    WaitRound round(thread);
    if (!line_up(round, [&] { thread.arm(); })) return {};
    Case* own = nullptr;
    const Error error = show(thread, nullptr, own);
    const WakeReason reason = own != nullptr ? thread.reason() : thread.park(patience());
    return withdraw(round, reason, own, error, nullptr);
  }

  [[gnu::noinline]] std::optional<Outcome> poll_on_thread() noexcept {
    if (descriptors > kThreadFds) return failed({ErrorCode::limit});
    SelectingThread thread;
    if (!thread.usable()) return failed({ErrorCode::limit});
    pollfd entries[kThreadFds + 1];
    std::size_t used = 0;
    for (const Case& one : std::span(cases, count)) {
      if (one.kind_ == Kind::descriptor)
        entries[used++] = {.fd = one.fd_, .events = events_of(one.direction_), .revents = 0};
    }
    WaitRound round(thread);
    if (!line_up(round, [&] { thread.arm(0); })) return {};
    Case* own = nullptr;
    const Error error = show(thread, nullptr, own);
    WakeReason reason = own != nullptr ? thread.reason() : thread.park({entries, used + 1}, patience());
    if (own == nullptr && reason == WakeReason::ready) {
      used = 0;
      for (Case& one : std::span(cases, count)) {
        if (one.kind_ == Kind::descriptor && entries[used++].revents != 0 && own == nullptr) {
          own = &one;
          if ((entries[used - 1].revents & POLLNVAL) != 0) reason = WakeReason::closed;
        }
      }
    }
    return withdraw(round, reason, own, error, nullptr);
  }

  Deadline patience() const noexcept { return timer != nullptr ? timer->deadline_ : deadline; }

  // line_up arms the waiter and puts it in all lines, or none: false when one of them has got ready.
  template <class Arm>
  bool line_up(WaitRound& round, Arm arm_waiter) noexcept {
    sort_by_lock();
    const Spinlock* last = nullptr;
    for (Case* one = first_locked; one != nullptr; one = one->next_locked_) {
      if (&lock(*one) != last) lock(*one).lock();
      last = &lock(*one);
    }
    bool ready = false;
    for (Case* one = first_locked; one != nullptr && !ready; one = one->next_locked_) ready = may_be_ready(*one);
    if (!ready) {
      arm_waiter();
      for (Case& one : std::span(cases, count)) {
        if (!lines_up(one)) continue;
        one.round = &round;
        one.closed = false;
        one.replaces = one.kind_ == Kind::receive;
        line(one).push(one);
      }
    }
    last = nullptr;
    for (Case* one = first_locked; one != nullptr; one = one->next_locked_) {
      if (&lock(*one) != last) lock(*one).unlock();
      last = &lock(*one);
    }
    return !ready;
  }

  // may_be_ready tells whether it is worth a look. Under its lock.
  static bool may_be_ready(const Case& one) noexcept {
    if (one.kind_ == Kind::event) return event(one).is_set();
    return one.kind_ == Kind::send ? channel(one).may_send() : channel(one).may_receive();
  }

  bool line_is_ready() const noexcept {
    for (const Case& one : std::span(cases, count)) {
      if (!lines_up(one)) continue;
      Locked hold(lock(one));
      if (may_be_ready(one)) return true;
    }
    return false;
  }

  // sort_by_lock links the cases that line up in the order of their locks' addresses.
  void sort_by_lock() noexcept {
    first_locked = nullptr;
    for (Case& one : std::span(cases, count)) {
      if (!lines_up(one)) continue;
      Case** at = &first_locked;
      while (*at != nullptr && std::less<>()(&lock(**at), &lock(one))) at = &(*at)->next_locked_;
      one.next_locked_ = *at;
      *at = &one;
    }
  }

  // show lets descriptors and fibers claim the waiter. `own` is the case, if any, at which it stopped: one that was
  // ready, or failed with the error that is returned; the waiter has then been claimed, here or by another case.
  Error show(Waiter& waiter, Reactor* reactor, Case*& own) noexcept {
    for (Case& one : std::span(cases, count)) {
      one.shown_ = false;
      if (one.kind_ == Kind::descriptor && reactor != nullptr) {
        const auto attached = reactor->attach(one.fd_, one.direction_, waiter);
        if (attached && *attached) {
          one.shown_ = true;
          continue;
        }
        own = &one;
        const bool mine = waiter.claim(WakeReason::ready) != Waiter::Claim::lost;
        if (!attached) return attached.error();
        if (!mine) reactor->restore(one.fd_, one.direction_);
        return {};
      }
      if (one.kind_ == Kind::ended) {
        if (has_ended(one)) {
          own = &one;
        } else if (fiber(one)->join.load(std::memory_order_acquire) == FiberControl::kWaiting) {
          own = &one;
          static_cast<void>(waiter.claim(WakeReason::joined));
          return {ErrorCode::busy};
        } else if (open_to_waiting(fiber(one), &waiter)) {
          one.shown_ = true;
          continue;
        } else {
          own = &one;
        }
        static_cast<void>(waiter.claim(WakeReason::joined));
        return {};
      }
    }
    return {};
  }

  // withdraw takes the waiter out of everything, and tells what has won. `own` is where show stopped, or a thread's
  // descriptor.
  Outcome withdraw(WaitRound& round, WakeReason reason, Case* own, Error error, Reactor* reactor) noexcept {
    const Case* winner = nullptr;
    if (reason == WakeReason::handed) winner = static_cast<Case*>(round.await_winner());
    for (Case& one : std::span(cases, count)) {
      if (lines_up(one)) {
        if (&one == winner) continue;
        Locked hold(lock(one));
        if (one.queued) line(one).remove(one);
      } else if (one.shown_ && one.kind_ == Kind::descriptor) {
        if (reactor->detach(one.fd_, one.direction_, *round.waiter)) continue;
        // An event came here. The first to be found is taken to have won, for it may have; the others stay known.
        if (winner == nullptr && own == nullptr && (reason == WakeReason::ready || reason == WakeReason::closed)) {
          winner = &one;
        } else if (reason == WakeReason::ready || reason == WakeReason::closed) {
          reactor->restore(one.fd_, one.direction_);
        }
      } else if (one.shown_ && !leave_joining(fiber(one))) {
        if (winner == nullptr && own == nullptr && reason == WakeReason::joined) winner = &one;
      }
    }
    if (winner == nullptr && own != nullptr &&
        (reason == WakeReason::ready || reason == WakeReason::joined || reason == WakeReason::closed)) {
      if (error == ErrorCode::closed) return won(*own, true);
      if (error.code != ErrorCode{}) return failed(error);
      winner = own;
    }
    if (winner != nullptr) return won(*winner, winner->closed || reason == WakeReason::closed);
    if (reason == WakeReason::timed_out && timer != nullptr && timer->deadline_.passed()) return won(*timer);
    return failed(error_of(reason));
  }
};

std::expected<Selected, Error> select_erased(Case* cases, std::size_t count, Deadline deadline) noexcept {
  if (count == 0 && deadline.is_never()) return std::unexpected(Error{ErrorCode::invalid});
  return Selection{.cases = cases, .count = count, .deadline = deadline}.run();
}

}  // namespace coir::detail
