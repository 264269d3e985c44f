#include <coir/nursery.h>

#include <coir/detail/fatal.h>

#include "schedule/scheduler.h"
#include "wait/current_scope.h"

namespace coir {

std::expected<void, Error> Nursery::join(Deadline deadline, const std::source_location& where) noexcept {
  if (joined_) return {};
  joined_ = true;
  if (current_scope() != &base_.scope()) {
    detail::fatal(
        "a nursery is joined by another fiber, or inside a scope that was entered after it: give join the deadline",
        where);
  }
  std::expected<void, Error> outcome;
  if (deadline.is_never()) {
    outcome = base_.leave();
  } else {
    const CancelScope scope(deadline);
    outcome = base_.leave();
    if (!outcome && scope.caused(outcome.error())) outcome.error().scope = 0;
  }
  base_.retreat();
  while (deferred_ != nullptr) {
    Deferred* const deferred = deferred_;
    deferred_ = deferred->earlier;
    deferred->run(deferred, outcome);
  }
  return outcome;
}

Nursery::~Nursery() {
  const std::expected<void, Error> outcome = join();
  // An end by an enclosing scope, or by the caller's own cancellation, is reported there.
  if (outcome || outcome.error().scope != 0 || (outcome.error() == ErrorCode::cancelled && cancelled())) return;
  const detail::Scope* const around = current_scope();
  const detail::FiberName whose = base_.failed().id != 0 ? base_.failed() : detail::name_of_caller();
  if (around != nullptr && around->nursery != nullptr) {
    around->nursery->fail(outcome.error(), whose);
  } else if (const Visit run; run) {
    run->fail(outcome.error(), whose);
  }
}

void* Nursery::room_for(std::size_t bytes, const std::source_location& where) noexcept {
  const std::size_t start = (used_ + alignof(std::max_align_t) - 1) & ~(alignof(std::max_align_t) - 1);
  if (bytes > kRoom - start || start > kRoom) {
    detail::fatal("a nursery was left more deferred bodies than it has room for", where);
  }
  used_ = start + bytes;
  return room_ + start;
}

}  // namespace coir
