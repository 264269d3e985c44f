#pragma once

#if defined(COIR_NO_ASYNC) && COIR_NO_ASYNC
#error \
    "coir/fiber.h: this build has no fibers (COIR_NO_ASYNC); write it with coir/wait.h and coir/program.h, or build without --no-async"
#endif

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <new>
#include <source_location>
#include <type_traits>
#include <utility>

#include <coir/deadline.h>
#include <coir/error.h>
#include <coir/stack_size.h>

namespace coir {

struct FiberControl;
class Case;

// SpawnOptions: `name` outlives the fiber (a literal, as a rule). `stack` is in bytes, rounded up to 8, 16, 32 or 64
// KiB; 0 is the default of the run.
struct SpawnOptions {
  const char* name = "fiber";
  std::size_t stack = 0;
};

// FiberRef names a fiber without owning it. It stays valid to use after the fiber has ended: calls then return `stale`.
class FiberRef {
 public:
  constexpr FiberRef() noexcept = default;
  FiberRef(FiberControl* control, std::uint64_t id) noexcept : control_(control), id_(id) {}

  // id is unique in a run; 0 for no fiber, such as a plain thread.
  std::uint64_t id() const noexcept { return id_; }

  // cancel marks the fiber and ends the wait that it is in, or enters next, with `cancelled`. It stays marked: every
  // later wait fails at once. Any thread, any fiber, itself included. Error: stale.
  [[nodiscard]] std::expected<void, Error> cancel() const noexcept;

  bool alive() const noexcept;

  friend bool operator==(const FiberRef& a, const FiberRef& b) noexcept { return a.id_ == b.id_; }

 protected:
  friend class Case;  // waits for the end of a fiber

  FiberControl* control_ = nullptr;
  std::uint64_t id_ = 0;
};

// Fiber owns a spawned fiber until it is joined or detached. Dropping it detaches. Move-only.
class [[nodiscard]] Fiber : public FiberRef {
 public:
  constexpr Fiber() noexcept = default;
  // A spawn that failed: join returns `why`.
  explicit Fiber(Error why) noexcept : failure_(why) {}
  Fiber(FiberControl* control, std::uint64_t id) noexcept : FiberRef(control, id) {}
  Fiber(Fiber&& other) noexcept
      : FiberRef(std::exchange(other.control_, nullptr), std::exchange(other.id_, 0)), failure_(other.failure_) {}
  Fiber& operator=(Fiber&& other) noexcept {
    if (this != &other) {
      if (control_ != nullptr) detach();
      control_ = std::exchange(other.control_, nullptr);
      id_ = std::exchange(other.id_, 0);
      failure_ = other.failure_;
    }
    return *this;
  }
  ~Fiber() {
    if (control_ != nullptr) detach();
  }

  // started tells whether the spawn had a stack to run on.
  bool started() const noexcept { return control_ != nullptr; }

  // join waits until the fiber has ended and releases it. After success the handle is empty; a second join is `stale`.
  // From a fiber or a plain thread; one joiner at a time. Errors: timed_out, cancelled (the caller; the fiber stays
  // joinable), stale, busy, or why the spawn failed: limit, no_memory.
  [[nodiscard]] std::expected<void, Error> join(Deadline deadline = Deadline::never()) noexcept;

  // detach lets the fiber run to its end on its own. Its result is destroyed when it ends.
  void detach() noexcept;

  bool done() const noexcept;

 protected:
  // wait_ended is join without the release: the result is still in place.
  std::expected<void, Error> wait_ended(Deadline deadline) noexcept;
  void* storage() const noexcept;
  void release() noexcept;

 private:
  Error failure_{ErrorCode::stale};
};

namespace detail {

// Launch is a fiber that has its stack but does not run yet, or, where control is null, the code of the error in place
// of the id.
struct Launch {
  FiberControl* control;
  std::uint64_t id;

  static Launch failed(ErrorCode code) noexcept { return {nullptr, static_cast<std::uint64_t>(code)}; }
  Error error() const noexcept { return {static_cast<ErrorCode>(id)}; }
};
Launch prepare(const SpawnOptions& options, std::size_t bytes, void (*run)(void*), void (*drop)(void*),
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
  union {
    R result;
  };
  F closure;
  template <class G>
  explicit Body(G&& f) : closure(std::forward<G>(f)) {}
  ~Body() {}

  static void run(void* storage) {
    auto* self = static_cast<Body*>(storage);
    std::construct_at(std::addressof(self->result), self->closure());
    self->closure.~F();
  }
  static void drop(void* storage) { static_cast<Body*>(storage)->result.~R(); }
};
template <class F>
struct Body<F, void> {
  F closure;
  template <class G>
  explicit Body(G&& f) : closure(std::forward<G>(f)) {}
  ~Body() {}

  static void run(void* storage) {
    auto* self = static_cast<Body*>(storage);
    self->closure();
    self->closure.~F();
  }
};
}  // namespace detail

// Task is a Fiber whose body returns a value, which waits in place at the top of the fiber's stack.
template <class T>
class [[nodiscard]] Task : public Fiber {
 public:
  using Fiber::Fiber;

  // await waits for the end, moves the result out and releases the fiber. Once: a second await is `stale`.
  // Errors: as join.
  [[nodiscard]] std::expected<T, Error> await(Deadline deadline = Deadline::never()) noexcept {
    if (auto ended = wait_ended(deadline); !ended) return std::unexpected(ended.error());
    T* result = static_cast<T*>(storage());
    std::expected<T, Error> value(std::move(*result));
    result->~T();
    release();
    return value;
  }

 private:
  using Fiber::join;
};

// spawn starts `body` as a fiber of its own: a Fiber if it returns nothing, else a Task of what it returns. The closure
// is moved to the new fiber's stack; nothing is allocated. If no stack can be had the handle is not started(), and
// joining it tells why. The new fiber becomes runnable; the caller goes on. From a fiber, a Dormant's wake, or a plain
// thread while a runtime runs. Cost: some tens of nanoseconds from the pool of hot stacks.
template <class F>
auto spawn(const SpawnOptions& options, F&& body, const std::source_location& where = std::source_location::current()) {
  using Closure = std::decay_t<F>;
  using R = std::invoke_result_t<Closure&>;
  if constexpr (std::is_void_v<R>) {
    using Body = detail::Body<Closure, void>;
    static_assert(alignof(Body) <= detail::kStorageAlignment);
    const detail::Launch made = detail::prepare(options, sizeof(Body), &Body::run, nullptr, where);
    if (made.control == nullptr) return Fiber(made.error());
    new (detail::storage_of(made.control, sizeof(Body))) Body(std::forward<F>(body));
    detail::launch(made.control);
    return Fiber(made.control, made.id);
  } else {
    using Body = detail::Body<Closure, R>;
    static_assert(alignof(Body) <= detail::kStorageAlignment);
    void (*drop)(void*) = std::is_trivially_destructible_v<R> ? nullptr : &Body::drop;
    const detail::Launch made = detail::prepare(options, sizeof(Body), &Body::run, drop, where);
    if (made.control == nullptr) return Task<R>(made.error());
    new (detail::storage_of(made.control, sizeof(Body))) Body(std::forward<F>(body));
    detail::launch(made.control);
    return Task<R>(made.control, made.id);
  }
}
template <std::invocable F>
auto spawn(F&& body, const std::source_location& where = std::source_location::current()) {
  return spawn(SpawnOptions{}, std::forward<F>(body), where);
}

// current is the fiber that calls; its id is 0 on a plain thread.
FiberRef current() noexcept;

// yield lets every other runnable fiber of this worker run once. On a plain thread it yields the CPU.
void yield() noexcept;

// sleep parks for at least `span`. Error: cancelled. On a plain thread it blocks.
[[nodiscard]] std::expected<void, Error> sleep(std::chrono::nanoseconds span) noexcept;
[[nodiscard]] std::expected<void, Error> sleep_until(Deadline deadline) noexcept;

// cancelled tells whether the calling fiber has been cancelled; a long computation asks now and then.
bool cancelled() noexcept;

}  // namespace coir
