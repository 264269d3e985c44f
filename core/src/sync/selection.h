#pragma once

#include <coir/select.h>

#include <optional>

#include "wait/wait_round.h"

namespace coir::detail {

// Selection is one select. It goes
//   look       try each case in turn, in a random order; the first that is ready ends it
//   line up    under all locks of channels, events and sources, see that still none of them is ready, and stand in
//   every line show       to the descriptors and the fibers, without locks; one that is ready by now claims the caller
//   for itself park       until one of them, the timer or a cancellation claims the caller withdraw   from all that did
//   not win
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
    return Selected{static_cast<std::size_t>(&first_like(one) - cases), closed};
  }
  static Outcome failed(Error error) noexcept { return std::unexpected(error); }

  static ChannelCore& channel(const Case& one) noexcept { return *static_cast<ChannelCore*>(one.object_); }
  static Event& event(const Case& one) noexcept { return *static_cast<Event*>(one.object_); }
  static CancellationSource& source(const Case& one) noexcept { return *static_cast<CancellationSource*>(one.object_); }
  static Semaphore& semaphore(const Case& one) noexcept { return *static_cast<Semaphore*>(one.object_); }
  static Mutex& mutex(const Case& one) noexcept { return *static_cast<Mutex*>(one.object_); }
  static FiberControl* fiber(const Case& one) noexcept { return static_cast<FiberControl*>(one.object_); }

  // Kinds of cases that stand in a WaitList.
  static bool lines_up(const Case& one) noexcept { return one.kind_ <= Kind::mutex; }
  static WaitList& line(const Case& one) noexcept {
    if (one.kind_ == Kind::event) return event(one).waiters_;
    if (one.kind_ == Kind::cancellation) return source(one).waiters_;
    if (one.kind_ == Kind::semaphore) return semaphore(one).waiters_;
    if (one.kind_ == Kind::mutex) return mutex(one).waiters_;
    return one.kind_ == Kind::send ? channel(one).senders_ : channel(one).receivers_;
  }
  static Spinlock& lock(const Case& one) noexcept {
    if (one.kind_ == Kind::event) return event(one).lock_;
    if (one.kind_ == Kind::semaphore) return semaphore(one).lock_;
    if (one.kind_ == Kind::mutex) return mutex(one).lock_;
    return one.kind_ == Kind::cancellation ? source(one).lock_ : channel(one).lock_;
  }

  Outcome run() noexcept;

 private:
  void prepare() noexcept;
  void shuffle() noexcept;
  const Case& first_like(const Case& one) const noexcept;
  // look ends the select with `one` if that is ready; `thoroughly` if that may cost a system call.
  std::optional<Outcome> look(Case& one, bool thoroughly) noexcept;
  // The waits return nothing when one that lines up has got ready on the way, and is to be looked at again.
  std::optional<Outcome> wait() noexcept;
  std::optional<Outcome> wait_on_thread() noexcept;
  std::optional<Outcome> poll_on_thread() noexcept;
  Deadline patience() const noexcept { return timer != nullptr ? timer->deadline_ : deadline; }

  // select_lines.cpp: lines of waiters and their locks
  // line_up arms the waiter, which is `self` or a thread's, and puts it in all lines, or does neither: false when one
  // of them has got ready.
  bool line_up(WaitRound& round, FiberControl* self) noexcept;
  static bool may_be_ready(const Case& one) noexcept;
  bool line_is_ready() const noexcept;
  void sort_by_lock() noexcept;

  static bool has_ended(const Case& one) noexcept;

  // show lets descriptors and fibers claim the waiter. `own` is the case, if any, at which it stopped: one that was
  // ready, or failed with the error that is returned; the waiter has then been claimed, here or by another case.
  Error show(WaitRound& round, Reactor* reactor, Case*& own) noexcept;
  // leave_line takes the waiter out of the line of a case that has not won.
  static void leave_line(Case& one) noexcept;
  // keep_guard takes the mutex that has called the waiter, or is false: the mutex went to another meanwhile.
  static bool keep_guard(Case& one) noexcept;
  // withdraw takes the waiter out of everything, and tells what has won; nothing where that was a mutex that has gone to
  // another. `own` is where show stopped, or a thread's descriptor.
  std::optional<Outcome> withdraw(WaitRound& round, WakeReason reason, Case* own, Error error,
                                  Reactor* reactor) noexcept;
};

}  // namespace coir::detail
