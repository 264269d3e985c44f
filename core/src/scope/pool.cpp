#include <coir/pool.h>

#include <coir/fiber.h>

#include "wait/park.h"

namespace coir::detail {

namespace {

// Submitter waits for a place, which is handed to it.
struct Submitter : WaitPlace {
  PoolJob* job = nullptr;
};

}  // namespace

void PoolBase::open(const PoolOptions& options, std::span<PoolJob> room) noexcept {
  for (PoolJob& job : room) {
    job.next = free_;
    free_ = &job;
  }
  base_.adopt();
  SpawnOptions own = options.spawn;
  own.detached = false;
  if (options.workers == 0) failure_ = ErrorCode::invalid;
  for (unsigned i = 0; i < options.workers; ++i) {
    {
      Locked hold(lock_);
      ++workers_;
    }
    const Fiber worker = start(GivenNursery{&base_, true}, own, [this] { work(); }, std::source_location::current());
    if (worker.started()) continue;
    Locked hold(lock_);
    --workers_;
    failure_ = worker.error();
    break;
  }
}

// take_place is under the lock.
std::expected<PoolJob*, Error> PoolBase::take_place() noexcept {
  if (closed_) return std::unexpected(Error(ErrorCode::closed));
  if (workers_ == 0) return std::unexpected(failure_);
  if (free_ == nullptr) return std::unexpected(Error(ErrorCode::queue_full));
  PoolJob* const job = free_;
  free_ = job->next;
  ++reserved_;
  return job;
}

std::expected<PoolJob*, Error> PoolBase::reserve_now() noexcept {
  Locked hold(lock_);
  return take_place();
}

std::expected<PoolJob*, Error> PoolBase::reserve(Deadline deadline) noexcept {
  Caller caller;
  Submitter place;
  {
    Locked hold(lock_);
    std::expected<PoolJob*, Error> taken = take_place();
    if (taken || taken.error() != ErrorCode::queue_full) return taken;
    if (!caller.may_wait()) return std::unexpected(Error(ErrorCode::unsupported));
    if (caller.is_cancelled()) return std::unexpected(error_of(WakeReason::cancelled));
    place.waiter = caller.arm();
    submitters_.add(place);
  }
  const WakeReason reason = caller.park(WaitKind::backlog, 0, deadline);
  Locked hold(lock_);
  if (place.job != nullptr) return place.job;
  if (reason == WakeReason::ready) return std::unexpected(Error(ErrorCode::closed));
  submitters_.remove(place);
  return std::unexpected(error_of(reason));
}

// hand_over is false when the last worker has gone, which a cancellation makes it do.
bool PoolBase::hand_over(PoolJob& job) noexcept {
  const OutsideClaim outside;
  Waiter* woken = nullptr;
  {
    Locked hold(lock_);
    if (workers_ == 0) return false;
    --reserved_;
    job.next = nullptr;
    *last_ = &job;
    last_ = &job.next;
    bump(queued_);
    idle_.claim_first(woken);
  }
  if (woken != nullptr) woken->wake();
  return true;
}

void PoolBase::give_back(PoolJob& job) noexcept {
  const OutsideClaim outside;
  Waiter* woken = nullptr;
  {
    Locked hold(lock_);
    if (WaitPlace* const first = submitters_.claim_first(woken); first != nullptr) {
      static_cast<Submitter*>(first)->job = &job;
      ++reserved_;
    } else {
      job.next = free_;
      free_ = &job;
    }
  }
  if (woken != nullptr) woken->wake();
}

// next_job waits for one; null: there will be none.
PoolJob* PoolBase::next_job() noexcept {
  for (;;) {
    Caller caller;
    WaitPlace place;
    {
      Locked hold(lock_);
      if (PoolJob* const job = first_; job != nullptr) {
        first_ = job->next;
        if (first_ == nullptr) last_ = &first_;
        bump(queued_, std::size_t{0} - 1);
        return job;
      }
      // A job whose place is taken comes yet. A cancelled worker cannot wait for it, and hand_over refuses it.
      const bool cancelled = caller.is_cancelled();
      if (cancelled) closed_ = true;
      if (cancelled || (closed_ && reserved_ == 0)) {
        --workers_;
        return nullptr;
      }
      place.waiter = caller.arm();
      idle_.add(place);
    }
    const WakeReason reason = caller.park(WaitKind::job, 0, Deadline::never());
    if (reason == WakeReason::ready) continue;
    Locked hold(lock_);
    idle_.remove(place);
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
  for (;;) {
    Waiter* woken = nullptr;
    bool more;
    {
      Locked hold(lock_);
      const bool last = workers_ == 0;
      more = (last ? submitters_ : idle_).claim_first(woken) != nullptr && last;
    }
    if (woken != nullptr) woken->wake();
    if (!more) return;
  }
}

std::expected<void, Error> PoolBase::close() noexcept {
  if (joined_) return std::unexpected(Error(ErrorCode::stale));
  joined_ = true;
  Waiter* woken = nullptr;
  bool more = true;
  while (more) {
    const OutsideClaim outside;
    {
      Locked hold(lock_);
      closed_ = true;
      more = submitters_.claim_first(woken) != nullptr;
      if (!more) idle_.claim_first(woken);  // who leaves sends the next
    }
    if (woken != nullptr) woken->wake();
  }
  const std::expected<void, Error> left = base_.leave();
  Locked hold(lock_);
  if (failed_) return std::unexpected(failure_);
  return left;
}

}  // namespace coir::detail
