#pragma once

#include <coir/port/needs_fibers.h>

#include <expected>
#include <utility>

#include <coir/detail/nursery_base.h>
#include <coir/fiber.h>

namespace coir::detail {

// FiberGroup is the nursery of a combinator: children that nobody holds a handle of.
class FiberGroup {
 public:
  explicit FiberGroup(std::uint32_t limit) noexcept : base_(limit) { base_.enter(); }
  ~FiberGroup() {
    if (!joined_) static_cast<void>(join());
  }
  FiberGroup(const FiberGroup&) = delete;
  FiberGroup& operator=(const FiberGroup&) = delete;

  // add starts a child; one that cannot start is a failure.
  template <class F>
  void add(F&& body, const std::source_location& where = std::source_location::current()) {
    auto child = start(GivenNursery{&base_, true}, {.name = "branch"}, std::forward<F>(body), where);
    if (!child.started()) base_.refuse(child.error());
  }

  std::expected<void, Error> join() noexcept {
    joined_ = true;
    const std::expected<void, Error> outcome = base_.leave();
    base_.retreat();
    return outcome;
  }
  // A child that was cancelled has not failed, and yet not done its part: `complete` tells.
  template <class Complete>
  std::expected<void, Error> join(Complete complete) {
    const std::expected<void, Error> outcome = join();
    if (!outcome || complete()) return outcome;
    if (auto own = check_cancelled(); !own) return own;
    return std::unexpected(Error(ErrorCode::cancelled));
  }

  void cancel(const char* reason) noexcept { base_.cancel(reason); }
  bool ended() const noexcept { return base_.cancelled(); }

 private:
  NurseryBase base_;
  bool joined_ = false;
};

}  // namespace coir::detail
