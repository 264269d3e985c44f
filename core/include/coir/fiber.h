#pragma once

// A fiber: a function that runs beside its caller.
//
//   Fiber fiber = spawn({.name = "reader", .stack = 16 * 1024}, [] { show("it runs"); });
//   if (auto ended = fiber.join(deadline); !ended) return complain(ended.error());

#include <coir/port/needs_fibers.h>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <new>
#include <source_location>
#include <type_traits>
#include <utility>

#include <coir/cancel_scope.h>
#include <coir/deadline.h>
#include <coir/detail/construct.h>
#include <coir/detail/fiber_handle.h>
#include <coir/detail/outcome.h>
#include <coir/error.h>
#include <coir/sleep.h>
#include <coir/task.h>

namespace coir {

namespace detail {

class NurseryBase;

// NewFiber is a fiber that has its stack but does not run yet, or, where control is null, the error in place of the id.
struct NewFiber {
  FiberControl* control;
  std::uint64_t id;

  static NewFiber failed(Error error) noexcept { return {nullptr, std::bit_cast<std::uint64_t>(error)}; }
  Error error() const noexcept { return std::bit_cast<Error>(id); }
};

// Code is how a fiber runs its body and ends its result: run returns the error that the body returned, which lies in
// the result, or null; drop is null when there is nothing to destroy.
struct Code {
  std::size_t bytes;
  const Error* (*run)(void* storage);
  void (*drop)(void* storage);
};

// CurrentNursery and GivenNursery name the nursery that a fiber is spawned in: the caller's, or a given one, with or
// without a wait for its limit.
struct CurrentNursery {};
struct GivenNursery {
  NurseryBase* nursery;
  bool wait;
};
// prepare makes a fiber that launch then starts; both are in spawn.cpp.
NewFiber prepare(CurrentNursery, const SpawnOptions& options, const Code& code, std::source_location where) noexcept;
NewFiber prepare(GivenNursery given, const SpawnOptions& options, const Code& code,
                 std::source_location where) noexcept;
void launch(FiberControl* control) noexcept;

// storage_of is where a fiber's Body lies: right below its control block.
inline constexpr std::size_t kStorageAlignment = 16;
inline void* storage_of(FiberControl* control, std::size_t bytes) noexcept {
  return reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(control) - bytes) & ~(kStorageAlignment - 1));
}

// Body is what lies at the top of a fiber's stack: the closure, before it room for its result, so that a Task finds the
// result without knowing the closure.
template <class F, class R>
struct Body {
  using Result = std::expected<typename Outcome<R>::Value, Error>;
  union {
    Result result;
  };
  F closure;
  template <class G>
  explicit Body(G&& f) : closure(std::forward<G>(f)) {}
  ~Body() {}

  static const Error* run(void* storage) {
    auto* self = static_cast<Body*>(storage);
    const Error* failure = nullptr;
    if constexpr (kMayFail<R>) {
      std::construct_at(std::addressof(self->result), self->closure());
      if (!self->result) failure = &self->result.error();
    } else {
      std::construct_at(std::addressof(self->result), std::in_place, self->closure());
    }
    self->closure.~F();
    return failure;
  }
  static void drop_result(void* storage) { static_cast<Body*>(storage)->result.~Result(); }
  static constexpr auto drop = std::is_trivially_destructible_v<Result> ? nullptr : &drop_result;
  using Handle = Task<typename Outcome<R>::Value>;
};
template <class F>
struct Body<F, void> {
  F closure;
  template <class G>
  explicit Body(G&& f) : closure(std::forward<G>(f)) {}
  ~Body() {}

  static const Error* run(void* storage) {
    auto* self = static_cast<Body*>(storage);
    self->closure();
    self->closure.~F();
    return nullptr;
  }
  static constexpr void (*drop)(void*) = nullptr;
  using Handle = Fiber;
};

template <class Where, class F>
auto start(Where nursery, const SpawnOptions& options, F&& body, const std::source_location& where) {
  using Closure = std::decay_t<F>;
  using Body = Body<Closure, std::invoke_result_t<Closure&> >;
  using Handle = typename Body::Handle;
  static_assert(alignof(Body) <= kStorageAlignment);
  static constexpr Code kCode{sizeof(Body), &Body::run, Body::drop};
  const NewFiber made = prepare(nursery, options, kCode, where);
  if (made.control == nullptr) return Handle(made.error());
  new (storage_of(made.control, sizeof(Body))) Body(std::forward<F>(body));
  launch(made.control);
  return Handle(made.control, made.id);
}

}  // namespace detail

// spawn starts `body` as a fiber of its own: a Fiber if it returns nothing, else a Task of what it returns. The closure
// is moved to the new fiber's stack; nothing is allocated. If there is no stack for it the handle is not started(), and
// join returns the reason. The new fiber becomes runnable; the caller goes on. It is a child of the caller's nursery,
// the innermost of coir/nursery.h that it runs in, whose limit it waits for (`deadlock` is explained there); without one
// it is the root's. From a fiber, a RestingWait's wake, or a plain thread while a runtime runs. Cost: some tens of
// nanoseconds from the pool of hot stacks.
//
// With several workers a fiber may continue on another thread after a wait, where thread_local variables, errno among
// them, are others. coir/errno.h looks errno up at each use, and says what your own variables need.
template <class F>
auto spawn(const SpawnOptions& options, F&& body, const std::source_location& where = std::source_location::current()) {
  return detail::start(detail::CurrentNursery{}, options, std::forward<F>(body), where);
}
template <std::invocable F>
auto spawn(F&& body, const std::source_location& where = std::source_location::current()) {
  return spawn(SpawnOptions{}, std::forward<F>(body), where);
}

// current returns the calling fiber; its id is 0 on a plain thread.
FiberRef current() noexcept;

// yield lets every other runnable fiber of this worker run once. On a plain thread it yields the CPU.
void yield() noexcept;

// yield_to_events is yield for a computation in slices: due timers and ready descriptors are handled before the next
// fiber runs, so that a fiber that they wake waits for one slice at most.
void yield_to_events() noexcept;

}  // namespace coir
