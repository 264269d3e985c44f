#pragma once

// A deadline, or a cancellation, for all that happens inside.
//
//   CancelScope scope(Deadline::after(250ms));
//   auto n = tcp.read(buffer);                                            // no deadline of its own
//   if (!n && scope.caused(n.error())) show("too slow");                  // else an enclosing scope ended it

#include <cstdint>
#include <expected>
#include <source_location>
#include <type_traits>
#include <utility>

#include <coir/atomic.h>
#include <coir/deadline.h>
#include <coir/detail/intrusive_list.h>
#include <coir/detail/outcome.h>
#include <coir/error.h>
#include <coir/spinlock.h>

namespace coir {

struct FiberControl;
struct ThreadPlace;

namespace detail {

class NurseryBase;

// Scope is one link of the chain of what is in force for a caller, the innermost first: its deadline, whether it is
// cancelled, and the nursery that spawns go to. Each fiber and each plain thread has a chain. A fiber's chain goes on
// with that of its nursery, whose owner cannot leave before the fiber has ended: every link of a chain outlives the
// waits in it, and only the owner of a link adds or takes it.
//
// Downwards a scope lists the scopes right inside it that lead to a nursery with no shield between, so that a
// cancellation reaches the children of all of them, at any depth. `lock` guards the list and its links; a scope is on
// the list of its outer one from before a nursery in it has children until after the last has ended. Locks are taken
// from outside in, a nursery's own lock before that of its scope: whoever holds a scope's lock keeps all that is below
// it in place.
struct Scope {
  Scope* outer = nullptr;
  NurseryBase* nursery = nullptr;  // null: the root
  Deadline deadline;               // never later than the outer one's, except behind a shield
  std::uint16_t id = 0;
  std::uint16_t deadline_id = 0;  // whose deadline it is
  bool shield = false;            // what lies outside does not reach in
  bool shown = false;             // on the list of the outer one; owner only
  Spinlock lock;                  // of the list
  IntrusiveSet<Scope> inner;      // the list
  Scope *next = nullptr, *previous = nullptr;
  Atomic<bool> cancelled{false};
  Atomic<const char*> reason{nullptr};
  FiberControl* owner = nullptr;  // null on a plain thread
  std::uint64_t ticket = 0;       // of the owner's waits right inside this scope
  ThreadPlace* thread = nullptr;  // the owner, where it is a plain thread

  // before_wait, where it is set, is called when the owner is about to park inside the scope and outside
  // every shield in it, by a wait that cancellation could end. It may make system calls but must neither wait nor wake
  // the owner, whose wait has begun. A reason ends that wait: unless what it waits for has come, the scope is cancelled
  // with the reason. Null lets it wait. With nested scopes the innermost scope that has a function is asked.
  using BeforeWait = const char* (*)(Scope& scope) noexcept;
  BeforeWait before_wait = nullptr;

  // around_work goes with before_wait: it is called before the owner, a fiber, waits for the blocking pool, and where it was true
  // then, again behind that wait. Work that is under way, a write to a file say, is no wait for something to happen.
  using AroundWork = bool (*)(Scope& scope, bool begins) noexcept;
  AroundWork around_work = nullptr;
};

// enter makes `scope` the caller's innermost; leave takes it out again. One that is not the innermost ends the process
// with a line that says so. scope.cpp has these and what follows.
void enter(Scope& scope, Deadline deadline) noexcept;
void enter_shield(Scope& scope, Deadline deadline,
                  const std::source_location& where = std::source_location::current()) noexcept;
void leave(Scope& scope) noexcept;

// adopt puts `scope` below the caller's innermost without making it the caller's own.
void adopt(Scope& scope) noexcept;

// show puts a nursery's scope, and those around it, on the lists of their outer ones, up to a shield; hide takes one
// off.
void show(Scope& scope) noexcept;
void hide(Scope& scope) noexcept;

// cancel marks the scope and wakes its owner, and the children of all nurseries inside.
void cancel(Scope& scope, const char* reason) noexcept;

// cancel_waiting does so only if the owner waits right inside the scope, as before_wait says. False: it does
// not, and a wait that begins from now on finds in before_wait what the caller has stored before. The caller keeps the
// scope in place.
bool cancel_waiting(Scope& scope, const char* reason) noexcept;

// is_owner tells whether the caller is the scope's owner, not a child or a thread of the blocking pool.
bool is_owner(const Scope& scope) noexcept;

// ended tells whether a cancellation or a deadline reaches in; where it does, by which error.
bool ended(const Scope& scope, Error& error) noexcept;

}  // namespace detail

// CancelScope bounds everything that the caller does while it lives, without a parameter to pass down: each blocking
// call inside, at any depth, returns `timed_out` once the deadline has passed and `cancelled` once cancel() was called,
// and so does each one in the children of nurseries that are opened inside. A scope inside another never outlives the
// outer one's deadline; Error::scope tells whose deadline passed.
//
// A local variable of a fiber or a plain thread; scopes end in reverse order. On a plain thread, too, a cancellation or
// a deadline ends the wait that the thread is in; a function that `blocking` runs in place is no wait. Cost: nothing
// for fibers outside any scope; inside, one look along the chain where a wait begins to park. A plain thread's wait for
// a descriptor takes two system calls more inside a scope, and a descriptor meanwhile, without which a cancellation is
// noticed by the next wait. With one worker a plain thread's sleep goes on when its scope is cancelled.
class CancelScope {
 public:
  explicit CancelScope(Deadline deadline = Deadline::never()) noexcept { detail::enter(scope_, deadline); }
  ~CancelScope() { detail::leave(scope_); }
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;

  // cancel ends the waits inside, now and later, those of the children of nurseries inside at once, too: whatever their
  // owner does meanwhile. `reason` is a literal, or outlives the scope. Any fiber or thread that knows the scope to
  // live; idempotent. Cost: a claim for each child that lives inside.
  void cancel(const char* reason = nullptr) noexcept { detail::cancel(scope_, reason); }

  // cancelled tells whether this scope or an enclosing one, up to a shield, is cancelled.
  bool cancelled() const noexcept;

  // deadline is the one in force: this scope's, or an enclosing one's that is earlier.
  Deadline deadline() const noexcept { return scope_.deadline; }

  // id is what Error::scope holds of errors that this scope caused. Never 0, and different from those of the enclosing
  // scopes; one in 65,535 others may share it.
  std::uint16_t id() const noexcept { return scope_.id; }
  bool caused(Error error) const noexcept { return error.scope == scope_.id; }

  // ended returns the error that waits inside end with from now on, if one does. Errors: timed_out, cancelled.
  std::expected<void, Error> ended() const noexcept {
    Error error;
    if (detail::ended(scope_, error)) return std::unexpected(error);
    return {};
  }

 private:
  friend class CancellationWatch;

  detail::Scope scope_;
};

// Shield keeps cancellations and deadlines from outside away from what the caller does while it lives: the place for a
// cleanup that has to wait. The fiber's own cancellation and shutdown() are kept away too, so that a shield should have
// a deadline of its own. They are in force again when the shield ends. At most 15 deep on a fiber, of which a nursery's
// join takes one while it cleans up; one more ends the process with a line.
class Shield {
 public:
  explicit Shield(Deadline deadline, const std::source_location& where = std::source_location::current()) noexcept {
    detail::enter_shield(scope_, deadline, where);
  }
  ~Shield() { detail::leave(scope_); }
  Shield(const Shield&) = delete;
  Shield& operator=(const Shield&) = delete;

 private:
  detail::Scope scope_;
};

// cancelled tells whether the caller has been cancelled, itself or by a scope around it; a long computation asks now
// and then.
bool cancelled() noexcept;

// check_cancelled is for a computation that does not wait: it returns the error with which a wait would end here and
// now. It reads the clock only inside a scope with a deadline. Errors: timed_out, cancelled.
[[nodiscard]] std::expected<void, Error> check_cancelled() noexcept;

// cancel_reason is the reason that was given for the cancellation of the caller, or null.
const char* cancel_reason() noexcept;

// with_deadline runs `body` on the caller inside a scope with that deadline, with_timeout with one that lies `span`
// ahead.
//
//   auto answer = with_timeout(2s, [&] { return ask(server); });
//
// A body that returns std::expected<T, Error> has its outcome returned as it is, even if it comes late: the
// body reports a wait inside it that timed out. For any other body the result is its value, or the error if the deadline
// passed before it returned. Errors: the body's; timed_out, cancelled. An error whose `scope` is 0 is of this deadline or the
// body's own, as with a deadline that is passed to a call; one whose `scope` is not 0 is of an enclosing scope.
template <class F>
[[nodiscard]] detail::OutcomeOf<F> with_deadline(Deadline deadline, F&& body) {
  CancelScope scope(deadline);
  const auto local = [&](Error error) {
    if (scope.caused(error)) error.scope = 0;
    return error;
  };
  if constexpr (detail::kMayFail<std::invoke_result_t<F&>>) {
    auto outcome = body();
    if (!outcome) outcome.error() = local(outcome.error());
    return outcome;
  } else if constexpr (std::is_void_v<std::invoke_result_t<F&>>) {
    body();
    if (const auto ended = scope.ended(); !ended) return std::unexpected(local(ended.error()));
    return {};
  } else {
    auto value = body();
    if (const auto ended = scope.ended(); !ended) return std::unexpected(local(ended.error()));
    return value;
  }
}
template <class F>
[[nodiscard]] detail::OutcomeOf<F> with_timeout(std::chrono::nanoseconds span, F&& body) {
  return with_deadline(Deadline::after(span), std::forward<F>(body));
}

}  // namespace coir
