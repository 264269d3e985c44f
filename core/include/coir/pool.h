#pragma once

// Jobs for a few fibers, with a bounded backlog.
//
//   Pool<64> pool({.fibers = 4});
//   if (auto taken = pool.try_submit([] { show(fetch("/a")); }); !taken) return complain(taken.error());
//   if (auto outcome = pool.close(); !outcome) return complain(outcome.error());

#include <coir/port/needs_fibers.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include <coir/deadline.h>
#include <coir/detail/fiber_handle.h>
#include <coir/detail/intrusive_list.h>
#include <coir/detail/nursery_base.h>
#include <coir/detail/outcome.h>
#include <coir/detail/wait_list.h>
#include <coir/error.h>

namespace coir {

// PoolOptions: how many fibers run jobs, and on what stacks.
struct PoolOptions {
  unsigned fibers = 4;
  SpawnOptions spawn{.name = "pool"};
};

namespace detail {

// PoolJob is a job that waits for a pool fiber.
struct PoolJob {
  static constexpr std::size_t kBytes = 48;
  // move takes the closure from one room to another; run calls it there, and ends it.
  void (*move)(void* from, void* to);
  std::expected<void, Error> (*run)(void* room);
  PoolJob* next;
  alignas(std::max_align_t) std::byte room[kBytes];
};

// PoolBase is a Pool but for the room of its backlog.
class PoolBase {
 public:
  PoolBase(const PoolBase&) = delete;
  PoolBase& operator=(const PoolBase&) = delete;

  // try_submit leaves a job to the pool's fibers: a body that returns nothing, or a std::expected<void, Error>; it is
  // moved, and at most 48 bytes large. From any fiber or thread. Errors: queue_full (the backlog is), closed, and why
  // no fiber of the pool could be started: limit, no_memory, invalid (none was asked for, or stacks are not that
  // large), unsupported (no runtime runs).
  template <std::invocable F>
  [[nodiscard]] std::expected<void, Error> try_submit(F&& job) {
    return leave_to_fibers(reserve_now(), std::forward<F>(job));
  }

  // submit waits for room in the backlog, first come first served.
  // Errors: timed_out, cancelled (the caller), closed; deadlock (every fiber of the pool, the caller the last, would wait
  // for room); limit, no_memory, invalid as try_submit; unsupported (also where
  // nothing can be waited for; core/README.md tells where).
  template <std::invocable F>
  [[nodiscard]] std::expected<void, Error> submit(F&& job, Deadline deadline = Deadline::never()) {
    return leave_to_fibers(reserve(deadline), std::forward<F>(job));
  }

  // close takes no more jobs, waits until every job that was taken has ended, and returns the first error that one
  // returned. If the caller is cancelled or a deadline around it passes, the jobs are cancelled, those that wait still
  // run, and it returns when they have ended. Only whoever made the pool closes it.
  // Errors: the first job's; cancelled, timed_out; stale (a second close); unsupported (core/README.md tells where).
  [[nodiscard]] std::expected<void, Error> close() noexcept;

  // cancel ends the waits of all jobs, those that wait to run included, and closes the pool.
  void cancel(const char* reason = nullptr) noexcept { base_.cancel(reason); }

  // backlog is how many jobs wait for a pool fiber.
  std::size_t backlog() const noexcept { return queued_.load(std::memory_order_relaxed); }

 protected:
  PoolBase() noexcept = default;
  ~PoolBase() = default;
  void open(const PoolOptions& options, std::span<PoolJob> room) noexcept;

 private:
  template <class F>
  std::expected<void, Error> leave_to_fibers(std::expected<PoolJob*, Error> reserved, F&& job) {
    using Closure = std::decay_t<F>;
    static_assert(sizeof(Closure) <= PoolJob::kBytes, "a pool's job holds more than 48 bytes");
    static_assert(alignof(Closure) <= alignof(std::max_align_t));
    if (!reserved) return std::unexpected(reserved.error());
    PoolJob& place = **reserved;
    new (place.room) Closure(std::forward<F>(job));
    place.move = [](void* from, void* to) {
      auto* const closure = static_cast<Closure*>(from);
      new (to) Closure(std::move(*closure));
      closure->~Closure();
    };
    place.run = [](void* room) -> std::expected<void, Error> {
      auto* const closure = static_cast<Closure*>(room);
      std::expected<void, Error> outcome = outcome_of(*closure);
      closure->~Closure();
      return outcome;
    };
    if (hand_over(place)) return {};
    static_cast<Closure*>(static_cast<void*>(place.room))->~Closure();
    give_back(place);
    return std::unexpected(Error(ErrorCode::closed));
  }

  std::expected<PoolJob*, Error> reserve_now() noexcept;
  std::expected<PoolJob*, Error> reserve(Deadline deadline) noexcept;
  bool hand_over(PoolJob& job) noexcept;
  void give_back(PoolJob& job) noexcept;
  std::expected<PoolJob*, Error> take_place() noexcept;
  void work() noexcept;
  PoolJob* next_job() noexcept;
  void dismiss() noexcept;
  void run(PoolJob& job) noexcept;
  void keep(Error error) noexcept;

  NurseryBase base_{0};
  Spinlock lock_;
  IntrusiveStack<PoolJob> free_;
  IntrusiveQueue<PoolJob> jobs_;
  WaitList idle_;        // pool fibers
  WaitList submitters_;  // while free_ is empty
  Atomic<std::size_t> queued_{0};
  std::size_t reserved_ = 0;  // taken places whose jobs are not in the queue yet
  unsigned fibers_ = 0;
  bool closed_ = false;
  bool joined_ = false;
  bool failed_ = false;
  Error failure_;  // of a job; of a pool fiber's start, while there is none
};

}  // namespace detail

// Pool runs jobs on a fixed number of fibers, and lets at most Backlog of them wait.
//
// A local variable; it belongs to the cancel scopes that it is made in. Its destructor closes it. A job's error does
// not stop the others; close returns the first. Memory: 80 bytes in the pool for each place of the backlog, and a stack
// for each fiber; nothing is allocated.
template <std::size_t Backlog>
class Pool : public detail::PoolBase {
 public:
  static_assert(Backlog > 0);
  explicit Pool(PoolOptions options = {}) noexcept { open(options, room_); }
  ~Pool() { static_cast<void>(close()); }

 private:
  detail::PoolJob room_[Backlog];
};

}  // namespace coir
