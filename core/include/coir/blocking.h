#pragma once

// A call that blocks runs on a thread of a small pool; the fiber parks meanwhile.
//
//   const auto written = blocking([] { return ::fsync(fd); }, Deadline::after(2s));
//   if (!written) return complain(written.error());

#include <cstddef>
#include <cstdint>
#include <expected>
#include <type_traits>
#include <utility>

#include <coir/atomic.h>
#include <coir/cancel_scope.h>
#include <coir/config.h>
#include <coir/deadline.h>
#include <coir/detail/construct.h>
#include <coir/error.h>

namespace coir {

class Waiter;

// BlockingStop tells a function on another thread that its caller no longer waits.
class BlockingStop {
 public:
  explicit BlockingStop(Deadline deadline) noexcept : deadline_(deadline) {}
  // For a function that runs in its caller's place, where nobody asks: it looks at the scopes itself.
  static BlockingStop in_place(Deadline deadline) noexcept { return BlockingStop(deadline, true); }

  // wanted is true once the caller was cancelled, or its deadline or that of a scope around it has passed. A long
  // function asks between two steps.
  bool wanted() const noexcept {
    return asked_.load(std::memory_order_relaxed) != 0 || deadline_.passed() || (in_place_ && !check_cancelled());
  }
  // why is the error to return then.
  Error why() const noexcept {
    if (in_place_ && !deadline_.passed()) {
      if (const auto going = check_cancelled(); !going) return going.error();
    }
    const std::uint32_t asked = asked_.load(std::memory_order_relaxed);
    Error error(asked != 0 ? static_cast<ErrorCode>(asked >> 16) : ErrorCode::timed_out);
    error.scope = static_cast<std::uint16_t>(asked);
    return error;
  }

  // ask is for the caller's side. relaxed: it carries nothing but itself.
  void ask(Error why) noexcept {
    asked_.store(static_cast<std::uint32_t>(why.code) << 16 | why.scope, std::memory_order_relaxed);
  }

 private:
  SharedAtomic<std::uint32_t> asked_{0};  // an error's code and scope; crosses threads in single-worker builds too
  BlockingStop(Deadline deadline, bool in_place) noexcept : deadline_(deadline), in_place_(in_place) {}

  Deadline deadline_;
  bool in_place_ = false;
};

namespace detail {

template <class R>
struct BlockingOutcome {
  using type = std::expected<R, Error>;
};
template <class T>
struct BlockingOutcome<std::expected<T, Error>> {
  using type = std::expected<T, Error>;
};

class BlockingPool;
class BlockingSeat;

// BlockingKind is what a call is for. Each kind has one thread even while calls of other kinds occupy all of the
// board's number: processes that are slow to start do not keep files from being read.
enum class BlockingKind : std::uint8_t { other, files, processes };
inline constexpr std::size_t kBlockingKinds = 3;

// BlockingCall is one call, on the stack of the fiber that waits for it. All of it is guarded by the pool's lock, but
// for what `run` does between begin and end.
struct BlockingCall {
  enum class State : std::uint8_t { queued, running, listed, done };
  using Run = void (*)(BlockingCall& call, BlockingSeat& seat);

  explicit BlockingCall(Run how) noexcept : run(how) {}

  Run run;
  Waiter* waiter = nullptr;
  BlockingSeat* seat = nullptr;  // of the thread that runs it
  BlockingCall* next = nullptr;
  BlockingCall* previous = nullptr;
  State state = State::queued;
  BlockingKind kind = BlockingKind::other;
};

// BlockingSeat is a thread's side of the call that it runs. `run` is entered and left as it says here:
//
//   run(call, seat)     the lock is held and the caller waits: what is needed of the call is moved out
//   seat.begin()        the lock is open: f runs; the call may vanish
//   if (seat.end())     the lock is held: the caller still waits, the result is moved to it
//   seat.finish()       the caller is woken, the lock is open
class BlockingSeat {
 public:
  void begin() noexcept;
  bool end() noexcept;
  void finish() noexcept;

 private:
  friend class BlockingPool;
  explicit BlockingSeat(BlockingPool& pool) noexcept : pool_(pool) {}

  BlockingPool& pool_;
  BlockingCall* call_ = nullptr;  // null once its caller has left
};

// runs_in_place is true on a plain thread, where blocking is what the caller wants.
bool runs_in_place() noexcept;
// may_run_elsewhere is false on a plain thread that run_owned cannot serve: in single-worker builds, and where system
// calls are denied, which the pool's threads might make.
bool may_run_elsewhere() noexcept;
// run_owned waits until the call is done; after an error the call is nobody's. Fiber, or a plain thread that
// may_run_elsewhere. run_borrowed is for fibers: it waits for the end of a call
// that has begun in any case; `shielded` means that neither cancellation nor a deadline keeps it from beginning.
std::expected<void, Error> run_owned(BlockingCall& call, Deadline deadline) noexcept;
std::expected<void, Error> run_borrowed(BlockingCall& call, BlockingStop& stop, Deadline deadline,
                                        bool shielded) noexcept;

template <class F>
class OwnedCall : public BlockingCall {
 public:
  using R = std::invoke_result_t<F&>;

  template <class G>
  explicit OwnedCall(G&& f) : BlockingCall(&run_it), f_(std::forward<G>(f)) {}

  typename BlockingOutcome<R>::type go(Deadline deadline) {
    if (auto ran = run_owned(*this, deadline); !ran) return std::unexpected(ran.error());
    if constexpr (!std::is_void_v<R>) {
      typename BlockingOutcome<R>::type outcome(std::move(result_.value));
      std::destroy_at(std::addressof(result_.value));
      return outcome;
    } else {
      return {};
    }
  }

 private:
  template <class T>
  union Room {
    Room() {}
    ~Room() {}
    T value;
  };
  struct None {};

  static void run_it(BlockingCall& base, BlockingSeat& seat) {
    auto& self = static_cast<OwnedCall&>(base);
    if constexpr (std::is_void_v<R>) {
      {
        F f(std::move(self.f_));
        seat.begin();
        f();
      }
      static_cast<void>(seat.end());
      seat.finish();
    } else {
      Room<R> local;
      {
        F f(std::move(self.f_));
        seat.begin();
        ::new (static_cast<void*>(std::addressof(local.value))) R(f());
      }
      if (seat.end()) ::new (static_cast<void*>(std::addressof(self.result_.value))) R(std::move(local.value));
      seat.finish();
      std::destroy_at(std::addressof(local.value));  // the result itself where nobody waits for it any more
    }
  }

  F f_;
  [[no_unique_address]] std::conditional_t<std::is_void_v<R>, None, Room<R>> result_;
};

template <class F>
class BorrowedCall : public BlockingCall {
 public:
  using R = std::invoke_result_t<F&, const BlockingStop&>;

  BorrowedCall(F& f, Deadline deadline) noexcept
      : BlockingCall(&run_it), f_(f), outcome_(std::unexpected(Error{ErrorCode::cancelled})), stop_(deadline) {}

  typename BlockingOutcome<R>::type go(Deadline deadline, bool shielded) {
    if (auto ran = run_borrowed(*this, stop_, deadline, shielded); !ran) return std::unexpected(ran.error());
    return std::move(outcome_);
  }

 private:
  static void run_it(BlockingCall& base, BlockingSeat& seat) {
    auto& self = static_cast<BorrowedCall&>(base);
    seat.begin();
    if constexpr (std::is_void_v<R>) {
      self.f_(self.stop_);
      self.outcome_ = {};
    } else {
      self.outcome_ = self.f_(self.stop_);
    }
    static_cast<void>(seat.end());
    seat.finish();
  }

  F& f_;
  typename BlockingOutcome<R>::type outcome_;
  BlockingStop stop_;
};

template <class F, class... Arguments>
auto run_in_place(F& f, const Arguments&... arguments) ->
    typename BlockingOutcome<std::invoke_result_t<F&, const Arguments&...>>::type {
  if constexpr (std::is_void_v<std::invoke_result_t<F&, const Arguments&...>>) {
    f(arguments...);
    return {};
  } else {
    return f(arguments...);
  }
}

// blocking_for is blocking_borrowed for a call of that kind.
template <class F>
auto blocking_for(BlockingKind kind, F&& f, Deadline deadline) {
  if constexpr (COIR_NO_ASYNC) {
    return run_in_place(f, BlockingStop::in_place(deadline));
  } else {
    if (runs_in_place()) return run_in_place(f, BlockingStop::in_place(deadline));
    BorrowedCall<std::remove_reference_t<F>> call(f, deadline);
    call.kind = kind;
    return call.go(deadline, false);
  }
}

}  // namespace detail

// kBlockingStackBytes is the stack of a thread of the pool, charged to account::stacks while the thread lives.
// Sanitizers' builds give four times as much under the same name.
inline constexpr std::size_t kBlockingStackBytes = std::size_t{64} * 1024;

// blocking runs f() on a thread of the pool, so that no worker is held up, and parks the calling fiber until f has
// returned. Threads are created when there is work, up to the board's number; further calls wait in order, which
// dump_fibers shows and stats counts. Files and processes each have a thread beyond that number while none of theirs
// runs. A thread ends after a second without work.
//
//   auto size = coir::blocking([fd = dup(log)] { return drain_and_close(fd); }, Deadline::after(2s));
//
// f is moved to the thread and must own what it touches: at the deadline, or when the caller is cancelled, the caller
// stops waiting while f runs on, and its result is destroyed on its thread when it ends, be it after the run. f calls
// nothing of coir but what may be called from a plain thread. In single-worker builds, where the pool's threads are the
// only ones beside the worker, those calls are Event::set, WaitGroup::add and done, Semaphore::release and each cancel,
// and f may use no ledger.
//
// On a plain thread, and in a build without fibers, f just runs, whatever the deadline. Returns what f returns; an
// std::expected<T, Error> is handed through. Nothing is allocated: the result comes by move.
// Errors: timed_out, cancelled (f may be running, or was never begun); no_memory, limit (no thread could start);
// unsupported (a RestingWait's wake, which must not park); f's own.
template <class F>
auto blocking(F&& f, Deadline deadline = Deadline::never()) {
  if constexpr (COIR_NO_ASYNC) {
    return detail::run_in_place(f);
  } else {
    if (detail::runs_in_place()) return detail::run_in_place(f);
    return detail::OwnedCall<std::decay_t<F>>(std::forward<F>(f)).go(deadline);
  }
}

// blocking_borrowed is blocking for a function that touches what its caller owns, such as a buffer: once f has begun
// the caller waits for its end, whatever comes. f(const BlockingStop&) asks `stop.wanted()` between its steps and ends
// early with `stop.why()`, here and on a plain thread. Errors: as blocking; timed_out and cancelled, but from f, mean
// that f was never begun.
template <class F>
auto blocking_borrowed(F&& f, Deadline deadline = Deadline::never()) {
  return detail::blocking_for(detail::BlockingKind::other, std::forward<F>(f), deadline);
}

}  // namespace coir
