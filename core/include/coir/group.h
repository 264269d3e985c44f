#pragma once

#include <coir/port/needs_fibers.h>

#include <cstdint>
#include <expected>
#include <source_location>
#include <utility>

#include <coir/deadline.h>
#include <coir/detail/nursery_base.h>
#include <coir/error.h>
#include <coir/fiber.h>

namespace coir {

// GroupOptions: `limit` is how many jobs may run at a time; 0 is any number.
struct GroupOptions {
  std::uint32_t limit = 0;
};

// Group runs jobs side by side and waits for them: the first that fails cancels the others, and its error is what wait
// returns. Unlike a Nursery it does not change where its owner's own spawns go, nor end the owner's own waits.
//
//   Group group;
//   for (Peer& peer : peers) static_cast<void>(group.go([&peer] { return peer.refresh(); }));
//   auto outcome = group.wait();
//
// A local variable; it belongs to the cancel scopes that it is made in. go and cancel from any fiber or thread that
// knows it to live, wait from the one that made it.
class Group {
 public:
  explicit Group(GroupOptions options = {}) noexcept : base_(options.limit) { base_.adopt(); }
  // Cancels what nobody waited for, and waits for its end.
  ~Group() {
    if (waiting_.load(std::memory_order_relaxed)) return;
    cancel("its group is gone");
    static_cast<void>(wait());
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  // go starts a job: a body that returns nothing, or a std::expected<void, Error>. At the limit it waits for room.
  // Errors: closed (waiting has begun), cancelled (a job has failed, or cancel was called; or the caller, while it
  // waits for room), timed_out, limit and no_memory (no stack).
  template <class F>
  [[nodiscard]] std::expected<void, Error> go(const SpawnOptions& options, F&& job,
                                              const std::source_location& where = std::source_location::current()) {
    if (auto open = accepts(); !open) return open;
    auto fiber = detail::start(detail::GivenNursery{&base_, true}, options, std::forward<F>(job), where);
    if (!fiber.started()) return std::unexpected(fiber.error());
    return {};
  }
  template <std::invocable F>
  [[nodiscard]] std::expected<void, Error> go(F&& job,
                                              const std::source_location& where = std::source_location::current()) {
    return go({.name = "job"}, std::forward<F>(job), where);
  }

  // wait takes no more jobs, waits until all have ended and returns the first failure; success when there were none. A
  // caller that is cancelled, or whose deadline passes, cancels the jobs and still waits for their end; it gets the
  // jobs' failure if there is one, else cancelled or timed_out. A second wait returns success.
  [[nodiscard]] std::expected<void, Error> wait(Deadline deadline = Deadline::never()) noexcept;

  void cancel(const char* reason = nullptr) noexcept { base_.cancel(reason); }
  std::uint32_t running() const noexcept { return base_.children(); }

 private:
  std::expected<void, Error> accepts() const noexcept;

  detail::NurseryBase base_;
  Atomic<bool> waiting_{false};
};

}  // namespace coir
