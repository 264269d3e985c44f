#pragma once

#include <coir/port/needs_fibers.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <utility>

#include <coir/deadline.h>
#include <coir/error.h>
#include <coir/stack_size.h>

namespace coir {

struct FiberControl;
class Case;

// SpawnOptions: `name` outlives the fiber (a literal, as a rule). `stack` is in bytes, rounded up to 8, 16, 32 or 64
// KiB; 0 is the default of the run, 16 KiB unless RunOptions or COIR_STACK_KB names another. A `detached` fiber belongs
// to the root nursery and to no cancel scope, wherever it is spawned: it may outlive its spawner.
struct SpawnOptions {
  const char* name = "fiber";
  std::size_t stack = 0;
  bool detached = false;
};

// FiberStatus is how far a fiber has come: `cancelling` was asked to end and has not, `failed` returned an error. For
// `empty` there is nothing left to ask: it never started, or was joined, awaited or dropped.
enum class FiberStatus : std::uint8_t { empty, running, cancelling, succeeded, failed };

// FiberRef names a fiber without owning it. It stays valid to use after the fiber has ended: calls then return `stale`.
class FiberRef {
 public:
  constexpr FiberRef() noexcept = default;
  FiberRef(FiberControl* control, std::uint64_t id) noexcept : control_(control), id_(id) {}

  // id is unique in a run; 0 for no fiber, such as a plain thread.
  std::uint64_t id() const noexcept { return id_; }

  // cancel marks the fiber and ends the wait that it is in, or enters next, with `cancelled`. It stays marked: every
  // later wait fails at once, but for those behind a Shield. The nurseries, groups and pools that it has made outside a
  // Shield are cancelled with it at once, whatever it does meanwhile, and those that it makes later. The first
  // `reason`, a literal or null, is what cancel_reason() tells the fiber. Any thread, any fiber, itself included.
  // Error: stale.
  [[nodiscard]] std::expected<void, Error> cancel(const char* reason = nullptr) const noexcept;

  bool alive() const noexcept;

  friend bool operator==(const FiberRef& a, const FiberRef& b) noexcept { return a.id_ == b.id_; }

 protected:
  friend class CancellationWatch;
  friend class Case;  // waits for the end of a fiber

  FiberControl* control_ = nullptr;
  std::uint64_t id_ = 0;
};

// Fiber is the handle of a spawned fiber: who holds it answers for the fiber's failure. Joining takes the fiber out of
// its nursery; a handle that is dropped leaves it, and its failure, to the nursery. An ended fiber's result stays on
// its stack until the handle takes or drops it, even when the nursery is gone by then. Move-only.
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
      if (control_ != nullptr) abandon();
      control_ = std::exchange(other.control_, nullptr);
      id_ = std::exchange(other.id_, 0);
      failure_ = other.failure_;
    }
    return *this;
  }
  ~Fiber() {
    if (control_ != nullptr) abandon();
  }

  // started tells whether the spawn had a stack to run on; error, why not.
  bool started() const noexcept { return control_ != nullptr; }
  Error error() const noexcept { return failure_; }

  // join waits until the fiber has ended and releases it. After success the handle is empty; a second join is `stale`.
  // From a fiber or a plain thread. Any number may wait for the end of a fiber: of those that join by one handle at the
  // same time, the first takes the outcome and the others get `stale`. Errors: timed_out, cancelled (the caller; the
  // fiber stays joinable), stale, unsupported (a plain thread of a single-worker build, or a worker's own stack), why the
  // spawn failed (limit, no_memory, invalid, closed), or the error that the body returned.
  [[nodiscard]] std::expected<void, Error> join(Deadline deadline = Deadline::never()) noexcept;

  // detach drops the handle: the fiber runs to its end on its own, its result is destroyed when it ends. Its nursery
  // still waits for it, so that only a child of the root outlives its spawner; SpawnOptions::detached makes it one.
  void detach() noexcept { abandon(); }

  bool done() const noexcept;
  FiberStatus status() const noexcept;

 protected:
  // wait_ended is join without the release: the fiber is the caller's alone, and the result still in place.
  std::expected<void, Error> wait_ended(Deadline deadline) noexcept;
  void* storage() const noexcept;
  void release() noexcept;

 private:
  std::expected<void, Error> wait_outside(Deadline deadline) noexcept;
  void abandon() noexcept;
  bool let_go() noexcept;

  Error failure_{ErrorCode::stale};
};

}  // namespace coir
