#include <coir/select.h>

#include <errno.h>

#include <coir/budget.h>

#include "scope/join.h"
#include "sync/selection.h"
#include "wait/polling_thread.h"

namespace coir::detail {

namespace {

constexpr std::size_t kThreadFds = 15;

// Dice are the caller's random numbers: its worker's, or a plain thread's own.
class Dice {
 public:
  // below is a number under `limit`.
  std::uint32_t below(std::uint32_t limit) noexcept {
    return static_cast<std::uint32_t>(std::uint64_t{worker_ != nullptr ? worker_->random() : own()} * limit >> 32);
  }

 private:
  static std::uint32_t own() noexcept {  // xorshift (Marsaglia)
    static constinit thread_local std::uint32_t state = 0x9e3779b9;
    state ^= state << 13;
    state ^= state >> 17;
    return state ^= state << 5;
  }

  Worker* const worker_ = this_worker();
};

}  // namespace

// shuffle sets the order in which cases are looked at, so that each of those that are ready has the same chance
// (Fisher and Yates, "inside-out").
void Selection::shuffle() noexcept {
  Dice dice;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t at = dice.below(i + 1);
    cases[i].turn_ = cases[at].turn_;
    cases[at].turn_ = i;
  }
}

auto Selection::run() noexcept -> Outcome {
  prepare();
  spend_budget(descriptors != 0 ? kSystemCallCost : 1);
  for (;;) {
    shuffle();
    // Poll descriptors only when not waiting, or when one is the first case of this turn, so that a case that is always
    // ready cannot starve them. Otherwise the wait reports them.
    const bool impatient = otherwise != nullptr || deadline.ns() <= 0;
    bool thoroughly = impatient || (count != 0 && !lines_up(cases[cases[0].turn_]) && line_is_ready());
    for (std::size_t i = 0; i < count; ++i) {
      if (auto outcome = look(cases[cases[i].turn_], thoroughly)) return *outcome;
      thoroughly = impatient;
    }
    if (otherwise != nullptr) return won(*otherwise);
    if (deadline.ns() <= 0) return failed({ErrorCode::timed_out});
    if (auto outcome = wait()) return *outcome;
  }
}

// first_like is the first place of what `one` waits for, where a descriptor or a fiber is listed twice.
const Case& Selection::first_like(const Case& one) const noexcept {
  if (one.kind_ != Kind::descriptor && one.kind_ != Kind::ended) return one;
  const Case* found = cases;
  while (found->kind_ != one.kind_ || found->fd_ != one.fd_ || found->direction_ != one.direction_ ||
         found->object_ != one.object_ || (one.kind_ == Kind::ended && found->id_ != one.id_)) {
    ++found;
  }
  return *found;
}

// prepare finds what concerns all cases.
void Selection::prepare() noexcept {
  for (Case& one : std::span(cases, count)) {
    one.shown_ = false;
    one.first = false;
    if (one.kind_ == Kind::semaphore) one.slot = &one.wanted_;
    if (one.kind_ == Kind::timer) {
      if (one.deadline_ <= (timer != nullptr ? timer->deadline_ : deadline)) timer = &one;
    } else if (one.kind_ == Kind::otherwise) {
      otherwise = &one;
    } else if (one.kind_ == Kind::descriptor) {
      ++descriptors;
    }
  }
}

auto Selection::look(Case& one, bool thoroughly) noexcept -> std::optional<Outcome> {
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
    case Kind::cancellation:
      if (source(one).cancelled()) return won(one);
      return {};
    case Kind::semaphore:
      if (semaphore(one).try_acquire(one.wanted_)) return won(one);
      return {};
    case Kind::mutex:
      if (mutex(one).holds_it()) return failed({ErrorCode::deadlock});
      if (auto held = mutex(one).try_lock()) {
        static_cast<std::optional<Mutex::Guard>*>(one.slot)->emplace(std::move(*held));
        return won(one);
      }
      return {};
    case Kind::descriptor:
      if (running_fiber() != nullptr && running_fiber()->worker->scheduler().reactor.take(one.fd_, one.direction_)) {
        return won(one);
      }
      if (thoroughly) {
        pollfd entry{.fd = one.fd_, .events = poll_events(one.direction_), .revents = 0};
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

bool Selection::has_ended(const Case& one) noexcept {
  FiberControl* const target = fiber(one);
  if (target == nullptr || target->id.load(std::memory_order_acquire) != one.id_) return true;
  return ends(target->join.load(std::memory_order_acquire));
}

auto Selection::wait() noexcept -> std::optional<Outcome> {
  if (FiberControl* const self = running_fiber(); self != nullptr) [[likely]] {
    if (is_cancelled(self)) {
      // One that got ready before the cancellation comes first, as it does in a wait that has begun.
      if (line_is_ready()) return {};
      return failed(error_of(WakeReason::cancelled));
    }
    WaitRound round(*self);
    if (!line_up(round, self)) return {};
    // Counted before it can be woken: is_quiescent must not find a fiber that waits for nothing.
    const auto counted = static_cast<std::int64_t>(descriptors);
    bump(self->worker->counters.fd_waits, counted);
    Case* own = nullptr;
    const Error error = show(round, &self->worker->scheduler().reactor, own);
    WakeReason reason;
    if (own != nullptr) {
      reason = self->reason();
    } else {
      reason = park(self, WaitKind::select, static_cast<std::int64_t>(count), patience());
    }
    std::optional<Outcome> outcome = withdraw(round, reason, own, error, &self->worker->scheduler().reactor);
    bump(self->worker->counters.fd_waits, -counted);
    return outcome;
  }
  if (this_worker() != nullptr || !kManyWorkers) return failed({ErrorCode::unsupported});
  return descriptors == 0 ? wait_on_thread() : poll_on_thread();
}

[[gnu::noinline]] auto Selection::wait_on_thread() noexcept -> std::optional<Outcome> {
  ThreadWaiter thread;
  WaitRound round(thread);
  if (!line_up(round, nullptr)) return {};
  Case* own = nullptr;
  const Error error = show(round, nullptr, own);
  const WakeReason reason = own != nullptr ? thread.reason() : thread.park(patience());
  return withdraw(round, reason, own, error, nullptr);
}

[[gnu::noinline]] auto Selection::poll_on_thread() noexcept -> std::optional<Outcome> {
  if (descriptors > kThreadFds) return failed({ErrorCode::limit});
  PollingThread thread;
  if (!thread.usable()) return failed({ErrorCode::limit});
  pollfd entries[kThreadFds + 1];
  std::size_t used = 0;
  for (const Case& one : std::span(cases, count)) {
    if (one.kind_ != Kind::descriptor) continue;
    if (one.fd_ < 0) return failed({ErrorCode::invalid, EBADF});  // poll would leave it out
    entries[used++] = {.fd = one.fd_, .events = poll_events(one.direction_), .revents = 0};
  }
  WaitRound round(thread);
  if (!line_up(round, nullptr)) return {};
  Case* own = nullptr;
  const Error error = show(round, nullptr, own);
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

Error Selection::show(WaitRound& round, Reactor* reactor, Case*& own) noexcept {
  Waiter& waiter = *round.waiter;
  for (Case& one : std::span(cases, count)) {
    if (one.kind_ == Kind::descriptor && reactor != nullptr) {
      one.tag_ = reactor->knows(one.fd_) ? reactor->tag(one.fd_) : 0;  // before a claim can come
      one.place_.waiter = &waiter;
      const auto attached = reactor->attach(one.fd_, one.direction_, one.place_);
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
      // A thread that is none of the run's shows itself inside a visit: after the run the slot reads as if somebody
      // could still be joined there.
      const Visit run;
      one.round = &round;
      if (run && !has_ended(one) && stand_in_line(fiber(one), one.id_, one)) {
        one.shown_ = true;
        continue;
      }
      own = &one;
      static_cast<void>(waiter.claim(WakeReason::joined));
      return {};
    }
  }
  return {};
}

auto Selection::withdraw(WaitRound& round, WakeReason reason, Case* own, Error error, Reactor* reactor) noexcept
    -> std::optional<Outcome> {
  Case* winner = nullptr;
  const Case* forgotten = nullptr;  // a descriptor that was closed
  if (reason == WakeReason::handed) winner = static_cast<Case*>(round.await_winner());
  for (Case& one : std::span(cases, count)) {
    if (lines_up(one)) {
      if (&one != winner) leave_line(one);
    } else if (one.shown_ && one.kind_ == Kind::descriptor) {
      if (reactor->detach(one.fd_, one.direction_, one.place_)) continue;
      // An event came here, or the descriptor was closed. The first that got ready is taken to have won, for it may
      // have; the others stay known. If a closing won, an event came too late, and is known.
      if (reactor->tag(one.fd_) != one.tag_) {
        if (forgotten == nullptr) forgotten = &one;
      } else if (winner == nullptr && own == nullptr && reason == WakeReason::ready) {
        winner = &one;
      } else if (reason == WakeReason::ready) {
        reactor->restore(one.fd_, one.direction_);
      }
    } else if (one.shown_ && !take_out_of_line(fiber(one), one)) {
      if (winner == nullptr && own == nullptr && reason == WakeReason::joined) winner = &one;
    }
  }
  const bool nothing_else = winner == nullptr && own == nullptr && reason == WakeReason::ready;
  if (forgotten != nullptr && (reason == WakeReason::closed || nothing_else)) {
    return won(*forgotten, true);
  }
  if (winner == nullptr && own != nullptr &&
      (reason == WakeReason::ready || reason == WakeReason::joined || reason == WakeReason::closed)) {
    if (error == ErrorCode::closed) return won(*own, true);
    if (error.code != ErrorCode{}) return failed(error);
    winner = own;
  }
  if (winner != nullptr && winner->kind_ == Kind::mutex && !keep_guard(*winner)) return {};
  if (winner != nullptr) return won(*winner, winner->closed || reason == WakeReason::closed);
  if (reason == WakeReason::timed_out && timer != nullptr && timer->deadline_.passed()) return won(*timer);
  return failed(error_of(reason));
}

std::expected<Selected, Error> select_erased(Case* cases, std::size_t count, Deadline deadline) noexcept {
  if (count == 0 && deadline.is_never()) return std::unexpected(Error{ErrorCode::invalid});
  return Selection{.cases = cases, .count = count, .deadline = deadline}.run();
}

}  // namespace coir::detail
