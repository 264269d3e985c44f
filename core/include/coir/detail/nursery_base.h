#pragma once

#include <coir/port/needs_fibers.h>

#include <cstdint>
#include <expected>

#include <coir/cancel_scope.h>
#include <coir/detail/fiber_name.h>
#include <coir/detail/intrusive_list.h>
#include <coir/detail/wait_list.h>
#include <coir/error.h>
#include <coir/spinlock.h>

namespace coir {

struct FiberControl;
class Waiter;
class ClaimedWaiters;

namespace detail {

struct SiblingLinks;  // of children: FiberControl::younger and elder

// NurseryBase is what all that own children stand on: Nursery, Group, Pool, all, any and race.
//
// Invariant: a child is on the list, under the lock, from before it runs until it has left its stack for good or a
// joiner who waits has taken it over; one that failed while its handle is held stays on it until the handle or the
// nursery takes it, whoever changes its join word first. The thread that finds no child running and the list empty
// under the lock is the last to touch the nursery: leave() returns after that.
class NurseryBase {
 public:
  // A limit of 0 is none.
  explicit NurseryBase(std::uint32_t limit) noexcept : limit_(limit) { scope_.nursery = this; }
  NurseryBase(const NurseryBase&) = delete;
  NurseryBase& operator=(const NurseryBase&) = delete;

  // enter makes it the caller's nursery until retreat, as a cancel scope with that deadline does; adopt makes it one that only
  // its children run in.
  void enter(Deadline deadline = Deadline::never()) noexcept;
  void adopt() noexcept;
  void retreat() noexcept;

  // leave waits for all children and returns the first failure nobody handled, or else what ended the wait: the
  // children are then cancelled and waited for all the same. From then on it is closed.
  std::expected<void, Error> leave() noexcept;

  void cancel(const char* reason) noexcept;
  // claim_all is cancel for a caller that wakes the waiters later.
  void claim_all(const char* reason, ClaimedWaiters& woken) noexcept;

  // claim_all_made_by does so with all nurseries of a fiber that is cancelled, so that this reaches their children
  // whatever the fiber does. Each stands on the list of the fiber that made it, until leave() has returned; one that
  // was made behind a shield does not. nursery_made.cpp has the list.
  static void claim_all_made_by(FiberControl& fiber, std::uint64_t id, const char* reason,
                                ClaimedWaiters& woken) noexcept;

  // fail makes `error` of the fiber `whose` the first failure unless there is one, and cancels everything inside.
  void fail(Error error, const FiberName& whose) noexcept;

  // refuse is fail for a child that could not start; in a cancelled nursery that is no failure.
  void refuse(Error error) noexcept {
    if (!cancelled()) fail(error, name_of_caller());
  }

  // failed is whose the first failure was.
  const FiberName& failed() const noexcept { return first_failed_; }

  bool cancelled() const noexcept { return scope_.cancelled.load(std::memory_order_seq_cst); }
  Scope& scope() noexcept { return scope_; }
  // holds_child tells whether the caller is a child of this nursery.
  bool holds_child() const noexcept;
  // holds_own_child tells whether it is one whose parent has made the nursery.
  bool holds_own_child() const noexcept;
  std::uint32_t children() const noexcept { return running_.load(std::memory_order_relaxed); }

  // Called by spawn and by a fiber's end.
  // admit waits for room, or refuses with `limit`; the place it grants is taken by link or given back by dismiss.
  std::expected<void, Error> admit(bool wait) noexcept;
  void dismiss() noexcept;
  void link(FiberControl* child) noexcept;
  // unlink_ended is for a child that has ended and whose handle was dropped, end_held for one whose handle is held:
  // it sets the join word. Both return whom the caller is to wake, claimed, or null.
  Waiter* unlink_ended(FiberControl* child) noexcept;
  Waiter* end_held(FiberControl* child) noexcept;
  // take takes a child away from the nursery for who joins it; drop_failed takes over the failure of one that is
  // dropped.
  void take(FiberControl* child, bool running) noexcept;
  void drop_failed(FiberControl* child) noexcept;
  // claim_children ends the children's waits, but for shielded ones, given that a scope around them is marked.
  void claim_children(ClaimedWaiters& woken) noexcept;

 private:
  void made() noexcept;
  void unmade() noexcept;
  void unlink(FiberControl* child) noexcept;
  Waiter* free_place() noexcept;
  Waiter* tell_leaver() noexcept;
  void fail_locked(Error error, const FiberName& whose, ClaimedWaiters& woken) noexcept;
  void cancel_locked(const char* reason, ClaimedWaiters& woken) noexcept;
  void claim_children_locked(ClaimedWaiters& woken) noexcept;
  void collect_failed(bool all, ClaimedWaiters& woken) noexcept;
  std::expected<void, Error> wait_empty() noexcept;

  Scope scope_;
  Spinlock lock_;
  IntrusiveSet<FiberControl, SiblingLinks> children_;
  WaitList spawners_;
  Waiter* leaver_ = nullptr;
  Atomic<std::uint32_t> running_{0};  // children that have not ended, and places granted
  FiberControl* maker_ = nullptr;
  std::uint64_t maker_id_ = 0;  // 0 for a plain thread
  NurseryBase *next_made_ = nullptr, *previous_made_ = nullptr;
  std::uint32_t limit_;
  bool entered_ = false;
  bool leaving_ = false;
  bool closed_ = false;
  bool failed_ = false;
  Error failure_;
  FiberName first_failed_;
};

}  // namespace detail

}  // namespace coir
