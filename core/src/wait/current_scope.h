#pragma once

#include <expected>

#include <coir/cancel_scope.h>
#include <coir/spinlock.h>

namespace coir {

class Waiter;

// Shielded says whether a wait continues when its fiber is cancelled or a scope around it ends. A fiber waits shielded
// while it cleans up, and while others use its memory.
enum class Shielded : bool { no, yes };

// ThreadPlace lets a canceller find the plain thread that owns a scope, if that thread waits. `lock` guards the rest; a
// claim under it meets the wait that is shown, or none.
struct ThreadPlace {
  Spinlock lock;
  Waiter* waiting = nullptr;
  detail::Scope* current_scope = nullptr;  // of the thread while it waits
  ThreadPlace* next = nullptr;             // link in the claimer's list
};

// current_scope refers to the caller's innermost scope: a fiber's lies in its control block, a plain thread's is
// thread-local.
detail::Scope*& current_scope() noexcept;

// cancelled_scope returns the outermost cancelled scope that reaches in, or null.
inline const detail::Scope* cancelled_scope(const detail::Scope* scope) noexcept {
  const detail::Scope* found = nullptr;
  for (; scope != nullptr; scope = scope->outer) {
    // seq_cst pairs with the mark in cancel: see begin_scoped_wait.
    if (scope->cancelled.load(std::memory_order_seq_cst)) found = scope;
    if (scope->shield) break;
  }
  return found;
}

// lower sets `deadline` to the scope's if that is earlier, and returns the id of the scope that owns it; 0 when it is
// unchanged.
inline std::uint16_t lower(const detail::Scope* scope, Deadline& deadline) noexcept {
  if (scope == nullptr || scope->deadline >= deadline) return 0;
  deadline = scope->deadline;
  return scope->deadline_id;
}

inline Error error_by(ErrorCode code, std::uint16_t scope) noexcept {
  Error error(code);
  error.scope = scope;
  return error;
}

// begin_scoped_wait begins a wait of a plain thread, which has been shown: it lowers `deadline` to the one in force, and
// asks the before_wait of a scope. False: a scope is cancelled. For a shielded wait no scope is in force.
bool begin_scoped_wait(Deadline& deadline, Shielded shielded = Shielded::no) noexcept;

// ShownWait shows an armed wait of a plain thread to cancellers of the scopes around it, unless it is shielded.
class ShownWait {
 public:
  explicit ShownWait(Waiter& waiter, Shielded shielded = Shielded::no) noexcept;
  ~ShownWait();
  ShownWait(const ShownWait&) = delete;
  ShownWait& operator=(const ShownWait&) = delete;

 private:
  ThreadPlace* place_;  // null outside any scope
};

// ScopedWork stands around a wait for the blocking pool, before it is armed. From a fiber, or with null for a thread; it
// may yield.
class ScopedWork {
 public:
  explicit ScopedWork(FiberControl* self) noexcept;
  ~ScopedWork();
  ScopedWork(const ScopedWork&) = delete;
  ScopedWork& operator=(const ScopedWork&) = delete;

 private:
  detail::Scope* scope_;  // that has to hear of the end, or null
};

// scoped_error is the error of the calling thread's latest wait.
Error scoped_error(ErrorCode code) noexcept;

}  // namespace coir
