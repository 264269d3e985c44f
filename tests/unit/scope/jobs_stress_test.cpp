// Jobs and their cancellation at random, over and over, as Mixed has it: what has no such test of its own beside it.

#include <CppUTest/TestHarness.h>
#include <coir/blocking.h>
#include <coir/cancellation.h>
#include <coir/event.h>
#include <coir/fiber.h>
#include <coir/group.h>
#include <coir/pool.h>
#include <pthread.h>

#include "tests/support/mixed.h"

namespace jobs_stress_test {

using namespace coir;
using namespace coir::test;

TEST_GROUP(JobsStress) {};

namespace {

// on_fiber is false on a plain thread, whose fibers the end of the run would not wait for.
bool on_fiber() noexcept {
  return coir::current().id() != 0;
}

bool is_end_of_wait(const Error& error) noexcept {
  return error == ErrorCode::timed_out || error == ErrorCode::cancelled;
}

}  // namespace

// Each job that a group has accepted has run when join returns, and join tells of the one that failed.
TEST(JobsStress, group) {
  Mixed mixed("group", 8);
  mixed.run([&](Random& random) {
    if (!on_fiber()) return;
    std::atomic<unsigned> ran{0};
    unsigned accepted = 0;
    bool failing = false;
    Group group({.limit = random.below(3)});
    for (std::uint32_t jobs = random.below(5); jobs > 0; --jobs) {
      const bool fails = random.below(6) == 0, yields = random.below(2) == 0;
      const auto taken = group.start([&ran, fails, yields]() -> std::expected<void, Error> {
        if (yields) coir::yield();
        ++ran;
        if (fails) return std::unexpected(Error{ErrorCode::invalid});
        return {};
      });
      accepted += bool{taken};
      failing = failing || (taken && fails);
      mixed.expect(taken || taken.error() == ErrorCode::cancelled);
    }
    const auto outcome = group.join(random.below(4) == 0 ? Deadline::after(random.micros(100)) : Deadline::never());
    mixed.expect(ran == accepted);
    mixed.expect(outcome   ? !failing
                 : failing ? outcome.error() == ErrorCode::invalid
                           : is_end_of_wait(outcome.error()));
  });
  mixed.check();
}

// Each job that a pool has taken runs once, whatever becomes of those that were refused. The pool of a cancelled fiber is
// cancelled with it, and closes.
TEST(JobsStress, pool) {
  Mixed mixed("pool", 8);
  mixed.run([&](Random& random) {
    if (!on_fiber()) return;
    std::atomic<unsigned> ran{0};
    unsigned taken = 0;
    {
      Pool<2> pool({.fibers = 1 + random.below(3)});
      for (std::uint32_t jobs = random.below(6); jobs > 0; --jobs) {
        const auto job = [&ran] { ++ran; };
        const auto outcome =
            random.below(2) == 0 ? pool.try_submit(job) : pool.submit(job, Deadline::after(random.micros(200)));
        taken += outcome.has_value();
        mixed.expect(outcome || outcome.error() == ErrorCode::queue_full || is_end_of_wait(outcome.error()) ||
                     (cancelled() && outcome.error() == ErrorCode::closed));
      }
      static_cast<void>(pool.close());
    }
    mixed.expect(cancelled() ? ran <= taken : ran == taken);
  });
  mixed.check();
}

// A wait inside a scope that is watched for ends once the source is cancelled, by whomever and whenever.
TEST(JobsStress, cancellation) {
  Mixed mixed("cancellation");
  constexpr std::uint32_t kSlots = 4;
  // A cancellation wakes: no lock of the runtime's may be held around it, and one of the system's may.
  struct Slot {
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    CancellationSource* source = nullptr;
  } slots[kSlots];
  mixed.run([&](Random& random) {
    if (random.below(2) == 0) {
      Slot& slot = slots[random.below(kSlots)];
      pthread_mutex_lock(&slot.lock);
      if (slot.source != nullptr) slot.source->cancel("at random");
      pthread_mutex_unlock(&slot.lock);
      return;
    }
    CancellationSource source;
    Slot& slot = slots[random.below(kSlots)];
    bool shown = false;
    pthread_mutex_lock(&slot.lock);
    if (slot.source == nullptr) {
      slot.source = &source;
      shown = true;
    }
    pthread_mutex_unlock(&slot.lock);
    if (random.below(8) == 0) source.cancel("early");
    CancelScope scope;
    {
      const CancellationWatch watch(source.token(), scope);
      const bool before = source.cancelled();
      Event never;
      const auto waited = never.wait(Deadline::after(random.micros(200)));
      mixed.expect(!waited && is_end_of_wait(waited.error()));
      mixed.expect(!before || waited.error() == ErrorCode::cancelled);
      if (shown) {
        pthread_mutex_lock(&slot.lock);
        slot.source = nullptr;
        pthread_mutex_unlock(&slot.lock);
      }
      mixed.expect(source.cancelled() == scope.cancelled() || cancelled());
    }
  });
  mixed.check();
}

// A call that blocks gives its own result, or none.
TEST(JobsStress, blocking) {
  Mixed mixed("blocking", 8);
  mixed.run([&](Random& random) {
    const std::uint32_t number = random.below(1'000'000);
    const Deadline deadline = random.below(4) == 0 ? Deadline::after(random.micros(200)) : Deadline::never();
    const auto outcome = blocking([number] { return number + 1; }, deadline);
    mixed.expect(outcome ? *outcome == number + 1
                         : is_end_of_wait(outcome.error()) || outcome.error() == ErrorCode::limit ||
                               outcome.error() == ErrorCode::no_memory);
  });
  mixed.check();
}

}  // namespace jobs_stress_test
