#include <coir/nursery.h>

#include <stdio.h>
#include <stdlib.h>

#include "schedule/scheduler.h"
#include "wait/current_scope.h"

namespace coir {

std::expected<void, Error> Nursery::join() noexcept {
  if (joined_) return {};
  joined_ = true;
  std::expected<void, Error> outcome = base_.leave();
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
  // What a scope around it or the caller's own cancellation ended is known there.
  if (outcome || outcome.error().scope != 0 || (outcome.error() == ErrorCode::cancelled && cancelled())) return;
  const detail::Scope* const around = current_scope();
  if (around != nullptr && around->nursery != nullptr) {
    around->nursery->fail(outcome.error());
  } else if (const Visit run; run) {
    run->fail(outcome.error());
  }
}

void* Nursery::room_for(std::size_t bytes) noexcept {
  const std::size_t start = (used_ + alignof(std::max_align_t) - 1) & ~(alignof(std::max_align_t) - 1);
  if (bytes > kRoom - start || start > kRoom) {
    fputs("coir: a nursery was left more deferred bodies than it has room for\n", stderr);
    abort();
  }
  used_ = start + bytes;
  return room_ + start;
}

}  // namespace coir
