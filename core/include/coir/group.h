#pragma once

// Fibers that end together; the first error wins.
//
//   Group group;
//   for (const char* path : {"/a", "/b"}) group.start([path] { return fetch(path); });
//   if (auto outcome = group.join(); !outcome) return complain(outcome.error());

#include <coir/port/needs_fibers.h>

#include <cstdint>
#include <expected>
#include <source_location>
#include <utility>

#include <coir/deadline.h>
#include <coir/detail/nursery_base.h>
#include <coir/detail/started.h>
#include <coir/error.h>
#include <coir/fiber.h>

namespace coir {

// GroupOptions: `limit` is how many jobs may run at a time; 0 is any number.
struct GroupOptions {
  std::uint32_t limit = 0;
};

// Group runs jobs side by side and waits for them: the first that fails cancels the others, and its error is what join
// returns. Unlike a Nursery it does not change where its owner's own spawns go, nor end the owner's own waits.
//
// A local variable; it belongs to the cancel scopes that it is made in. start and cancel from any fiber or thread
// that knows it to live, join from the one that made it.
class Group {
 public:
  explicit Group(GroupOptions options = {}) noexcept : base_(options.limit) { base_.adopt(); }
  // Cancels the jobs of a group that nobody joined, and waits for their end.
  ~Group() {
    if (joining_.load(std::memory_order_relaxed)) return;
    cancel("its group is gone");
    static_cast<void>(join());
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  // start starts a job: a body that returns nothing, or a std::expected<void, Error>. At the limit it waits for room.
  // A job that cannot start fails the group with the error, unless the caller asks the Started.
  // Errors: closed (joining has begun), cancelled (a job has failed, or cancel was called; or the caller, while it
  // waits for room), timed_out (the same), deadlock (every job, the caller the last, would wait for room), limit and
  // no_memory (no stack), invalid (stacks are not that large),
  // unsupported (no runtime runs, or the caller cannot wait for room where it is).
  template <class F>
  Started start(const SpawnOptions& options, F&& job,
                const std::source_location& where = std::source_location::current()) {
    if (auto open = accepts(); !open) return {base_, open.error()};
    const auto fiber = detail::start(detail::GivenNursery{&base_, true}, options, std::forward<F>(job), where);
    return {base_, fiber.started() ? Error() : fiber.error()};
  }
  template <std::invocable F>
  Started start(F&& job, const std::source_location& where = std::source_location::current()) {
    return start({.name = "job"}, std::forward<F>(job), where);
  }

  // join takes no more jobs, waits until all have ended and returns the first failure; success when there were none. If
  // the caller is cancelled or its deadline passes, the jobs are cancelled and still waited for; it gets the jobs'
  // failure if there is one, else cancelled or timed_out. Errors: the first failure's; cancelled, timed_out; stale (a
  // second join); unsupported (core/README.md tells where).
  [[nodiscard]] std::expected<void, Error> join(Deadline deadline = Deadline::never()) noexcept;

  // cancel ends the waits of all jobs. It is no failure.

  void cancel(const char* reason = nullptr) noexcept { base_.cancel(reason); }

  // running is how many jobs have not ended.
  std::uint32_t running() const noexcept { return base_.children(); }

 private:
  std::expected<void, Error> accepts() const noexcept;

  detail::NurseryBase base_;
  Atomic<bool> joining_{false};
};

}  // namespace coir
