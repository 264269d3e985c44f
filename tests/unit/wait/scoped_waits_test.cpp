#include <CppUTest/TestHarness.h>
#include <coir/cancel_scope.h>
#include <coir/fiber.h>

#include "tests/support/endless_waits.h"
#include "tests/support/everywhere.h"
#include "tests/support/thread.h"
#include "tests/support/until.h"

namespace scoped_waits_test {

using coir::CancelScope;
using coir::Deadline;
using coir::ErrorCode;
using coir::kManyWorkers;
using coir::spawn;
using coir::test::EndlessWaits;
using coir::test::Everywhere;
using coir::test::Thread;
using coir::test::until_parked;
using namespace std::chrono_literals;

// The waits of fibers and threads for each other, in a scope.
TEST_GROUP_BASE(ScopedWaits, Everywhere) {};

TEST(ScopedWaits, end_by_the_deadline_of_the_scope_and_tell_whose_it_was) {
  everywhere([&] {
    EndlessWaits shared;
    const auto reading = shared.lock.read();
    expect(reading.has_value());
    const auto all = [&] {
      for (int way = 0; way < EndlessWaits::kWays; ++way) {
        CancelScope scope(Deadline::after(2ms));
        const auto waited = shared.wait_in(way);
        expect(!waited && waited.error() == ErrorCode::timed_out && scope.caused(waited.error()));
        const auto again = shared.wait_in(way);
        expect(!again && again.error() == ErrorCode::timed_out && scope.caused(again.error()));
      }
    };
    all();
    if (kManyWorkers) Thread(all).join();
  });
}

TEST(ScopedWaits, end_when_the_scope_is_cancelled) {
  everywhere([&] {
    EndlessWaits shared;
    const auto reading = shared.lock.read();
    expect(reading.has_value());
    for (int way = 0; way < EndlessWaits::kWays; ++way) {
      CancelScope scope;
      auto canceller = spawn({.detached = true}, [&scope, waiting = coir::current()] {
        until_parked(waiting);
        scope.cancel();
      });
      const auto waited = shared.wait_in(way);
      expect(!waited && waited.error() == ErrorCode::cancelled && scope.caused(waited.error()));
      const coir::Shield shield(Deadline::never());
      expect(canceller.join().has_value());
    }
  });
}

}  // namespace scoped_waits_test
