#include <coir/pool.h>

#include <coir/budget.h>
#include <coir/fiber.h>

#include "wait/wait_round.h"

namespace coir::detail {

void PoolBase::open(const PoolOptions& options, std::span<PoolJob> room) noexcept {
  for (PoolJob& job : room) free_.push(job);
  base_.adopt();
  SpawnOptions own = options.spawn;
  own.detached = false;
  if (options.fibers == 0) failure_ = ErrorCode::invalid;
  for (unsigned i = 0; i < options.fibers; ++i) {
    {
      Locked hold(lock_);
      ++fibers_;
    }
    const Fiber worker = start(GivenNursery{&base_, true}, own, [this] { work(); }, std::source_location::current());
    if (worker.started()) continue;
    Locked hold(lock_);
    --fibers_;
    failure_ = worker.error();
    break;
  }
}

// take_place is under the lock.
std::expected<PoolJob*, Error> PoolBase::take_place() noexcept {
  if (closed_) return std::unexpected(Error(ErrorCode::closed));
  if (fibers_ == 0) return std::unexpected(failure_);
  PoolJob* const job = free_.pop();
  if (job == nullptr) return std::unexpected(Error(ErrorCode::queue_full));
  ++reserved_;
  return job;
}

std::expected<PoolJob*, Error> PoolBase::reserve_now() noexcept {
  Locked hold(lock_);
  return take_place();
}

std::expected<PoolJob*, Error> PoolBase::reserve(Deadline deadline) noexcept {
  spend_budget();
  lock_.lock();
  std::expected<PoolJob*, Error> taken = take_place();
  if (taken || taken.error() != ErrorCode::queue_full) {
    lock_.unlock();
    return taken;
  }
  PoolJob* place = nullptr;  // is handed over
  WaitNode node;
  node.inside = base_.holds_own_child();
  // Only a pool fiber that takes the next job makes room. Those that a job spawns are none.
  if (node.inside && all_inside(submitters_, fibers_ - 1)) {
    lock_.unlock();
    return std::unexpected(Error(ErrorCode::deadlock));
  }
  node.slot = &place;
  if (auto waited = wait_in(lock_, submitters_, node, {WaitKind::backlog}, deadline); !waited) {
    return std::unexpected(waited.error());
  }
  if (place == nullptr) return std::unexpected(Error(ErrorCode::closed));
  return place;
}

// hand_over is false when the last worker has gone, which a cancellation makes it do.
bool PoolBase::hand_over(PoolJob& job) noexcept {
  const OutsideClaim outside;
  WaitNode* idle;
  {
    Locked hold(lock_);
    if (fibers_ == 0) return false;
    --reserved_;
    jobs_.push(job);
    bump(queued_);
    idle = take_first(idle_);
  }
  if (idle != nullptr) wake_winner(*idle);
  return true;
}

void PoolBase::give_back(PoolJob& job) noexcept {
  const OutsideClaim outside;
  WaitNode* submitter;
  {
    Locked hold(lock_);
    submitter = take_first(submitters_);
    if (submitter != nullptr) {
      *static_cast<PoolJob**>(submitter->slot) = &job;
      ++reserved_;
    } else {
      free_.push(job);
    }
  }
  if (submitter != nullptr) wake_winner(*submitter);
}

// next_job waits for one; null: there will be none.
PoolJob* PoolBase::next_job() noexcept {
  for (bool late = false;;) {
    spend_budget();
    lock_.lock();
    PoolJob* const job = jobs_.pop();
    if (job != nullptr) bump(queued_, std::size_t{0} - 1);
    // A job whose place is taken comes yet. A worker that is cancelled, or in a scope whose deadline has passed, cannot
    // wait for it, and hand_over refuses it.
    const bool ended = job == nullptr && (late || is_cancelled(running_fiber()));
    if (ended) closed_ = true;
    const bool leaves = job == nullptr && (ended || (closed_ && reserved_ == 0));
    if (leaves) --fibers_;
    if (job != nullptr || leaves) {
      lock_.unlock();
      return job;
    }
    WaitNode node;
    const auto waited = wait_in(lock_, idle_, node, {WaitKind::job}, Deadline::never());
    late = !waited && waited.error() == ErrorCode::timed_out;
  }
}

void PoolBase::run(PoolJob& job) noexcept {
  alignas(std::max_align_t) std::byte room[PoolJob::kBytes];
  const auto call = job.run;
  job.move(job.room, room);
  give_back(job);
  const std::expected<void, Error> outcome = call(room);
  if (!outcome && !(outcome.error() == ErrorCode::cancelled && cancelled())) keep(outcome.error());
}

void PoolBase::keep(Error error) noexcept {
  Locked hold(lock_);
  if (failed_) return;
  failed_ = true;
  failure_ = error;
}

void PoolBase::work() noexcept {
  while (PoolJob* const job = next_job()) run(*job);
  dismiss();
}

// dismiss sends the next idle worker after one that has left, and after the last those who wait for room.
void PoolBase::dismiss() noexcept {
  WakeList woken;
  {
    Locked hold(lock_);
    if (fibers_ == 0) {
      woken.add_all(submitters_);
    } else if (WaitNode* const idle = take_first(idle_); idle != nullptr) {
      woken.add(*idle);
    }
  }
  woken.wake_all();
}

std::expected<void, Error> PoolBase::close() noexcept {
  if (joined_) return std::unexpected(Error(ErrorCode::stale));
  joined_ = true;
  {
    const OutsideClaim outside;
    WakeList woken;
    {
      Locked hold(lock_);
      closed_ = true;
      woken.add_all(submitters_);
      if (WaitNode* const idle = take_first(idle_); idle != nullptr) woken.add(*idle);  // who leaves sends the next
    }
    woken.wake_all();
  }
  const std::expected<void, Error> left = base_.leave();
  Locked hold(lock_);
  if (failed_) return std::unexpected(failure_);
  return left;
}

}  // namespace coir::detail
