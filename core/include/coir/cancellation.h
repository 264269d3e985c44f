#pragma once

// One source cancels any number of scopes.
//
//   CancellationSource source;
//   CancelScope scope;                                                    // in each fiber that takes part
//   CancellationWatch watch(source.token(), scope);
//   ...
//   source.cancel("the client has gone");                                 // anywhere

#include <coir/port/needs_fibers.h>

#include <expected>

#include <coir/atomic.h>
#include <coir/cancel_scope.h>
#include <coir/detail/fiber_handle.h>
#include <coir/detail/intrusive_list.h>
#include <coir/detail/wait_list.h>
#include <coir/error.h>
#include <coir/spinlock.h>

namespace coir {

class CancellationWatch;
class Case;
class ClaimedWaiters;
namespace detail {
struct WatchLinks;
}  // namespace detail

// CancellationSource cancels work that is spread over tasks, scopes and threads.
//
// It outlives its tokens and watches. A select waits for one by Case::cancelled(token).
class CancellationSource {
 public:
  CancellationSource() noexcept = default;
  CancellationSource(const CancellationSource&) = delete;
  CancellationSource& operator=(const CancellationSource&) = delete;

  // cancel cancels what is watched for, and whatever is from now on. Once: the first `reason`, a literal or null,
  // stays. Any fiber or thread.
  void cancel(const char* reason = nullptr) noexcept;

  bool cancelled() const noexcept { return cancelled_.load(std::memory_order_acquire); }
  // reason is null until it is cancelled.
  const char* reason() const noexcept { return reason_.load(std::memory_order_acquire); }

  class CancellationToken token() noexcept;

 private:
  friend class CancellationWatch;
  friend class CancellationToken;
  friend struct detail::Selection;

  Spinlock lock_;
  detail::WaitList waiters_;  // selects
  detail::IntrusiveSet<CancellationWatch, detail::WatchLinks> watches_;
  Atomic<bool> cancelled_{false};
  Atomic<const char*> reason_{nullptr};
};

// CancellationToken is the listening side of a source. A copyable word; an empty one is never cancelled.
class CancellationToken {
 public:
  constexpr CancellationToken() noexcept = default;

  bool cancelled() const noexcept { return source_ != nullptr && source_->cancelled(); }
  const char* reason() const noexcept { return source_ != nullptr ? source_->reason() : nullptr; }

 private:
  friend class CancellationSource;
  friend class CancellationWatch;
  friend class Case;
  explicit constexpr CancellationToken(CancellationSource* source) noexcept : source_(source) {}

  CancellationSource* source_ = nullptr;
};

inline CancellationToken CancellationSource::token() noexcept {
  return CancellationToken(this);
}

// CancellationWatch cancels a scope or a task when a token's source is cancelled, or at once if that has happened. A
// local variable that ends before the scope; after its end it cancels nothing. A task may end while it is watched.
// Nothing is allocated.
class CancellationWatch {
 public:
  CancellationWatch(CancellationToken token, CancelScope& scope) noexcept;
  CancellationWatch(CancellationToken token, FiberRef task) noexcept;
  // A scope with a before_wait is cancelled only if its owner waits right inside it (detail::cancel_waiting). After the
  // cancellation nothing happens here: before_wait looks at the token.
  CancellationWatch(CancellationToken token, detail::Scope& waiting) noexcept;
  ~CancellationWatch();
  CancellationWatch(const CancellationWatch&) = delete;
  CancellationWatch& operator=(const CancellationWatch&) = delete;

 private:
  friend class CancellationSource;
  friend struct detail::WatchLinks;

  void enlist() noexcept;
  void cancel_target(const char* reason, ClaimedWaiters& woken) noexcept;

  CancellationSource* source_;
  detail::Scope* scope_ = nullptr;
  FiberRef task_;
  CancellationWatch *next_ = nullptr, *previous_ = nullptr;
  bool only_waiting_ = false;
  bool listed_ = false;  // its source knows it; under the source's lock
};

struct detail::WatchLinks {
  static CancellationWatch*& next(CancellationWatch& one) noexcept { return one.next_; }
  static CancellationWatch*& previous(CancellationWatch& one) noexcept { return one.previous_; }
};

}  // namespace coir
