#include <CppUTest/TestHarness.h>
#include <coir/cancel_scope.h>
#include <coir/condition.h>
#include <coir/fiber.h>
#include <coir/rw_lock.h>
#include <coir/select.h>
#include <coir/semaphore.h>
#include <coir/wait_group.h>

#include <chrono>

#include "tests/support/everywhere.h"
#include "tests/support/pipe.h"
#include "tests/support/thread.h"

using coir::CancelScope;
using coir::Case;
using coir::Deadline;
using coir::Error;
using coir::ErrorCode;
using coir::kManyWorkers;
using coir::spawn;
using coir::test::Everywhere;
using coir::test::Pipe;
using coir::test::Thread;
using namespace std::chrono_literals;

namespace {

template <class T>
std::expected<void, Error> outcome_of(const std::expected<T, Error>& outcome) {
  if (!outcome) return std::unexpected(outcome.error());
  return {};
}

// Shared is what is waited for here, and never comes.
struct Shared {
  coir::Mutex own;
  coir::Condition condition;
  coir::Semaphore semaphore{0};
  coir::Event event;
  coir::WaitGroup group{1};
  coir::RwLock lock;
  coir::Channel<int> channel;
  Pipe pipe;

  static constexpr int kWays = 9;

  std::expected<void, Error> wait_in(int way) {
    int value = 0;
    switch (way) {
      case 0: {
        auto held = own.guard();
        return condition.wait(own);
      }
      case 1:
        return semaphore.acquire();
      case 2:
        return event.wait();
      case 3:
        return group.wait();
      case 4:
        return lock.lock();
      case 5:
        return channel.send(1);
      case 6:
        return outcome_of(channel.receive());
      case 7:
        return outcome_of(coir::select({Case::receive(channel, value), Case::opened(event), Case::after(24h)}));
      default:
        return outcome_of(coir::select({Case::receive(channel, value), Case::readable(pipe.reader)}));
    }
  }
};

}  // namespace

// The waits of fibers and threads for each other, in a scope.
TEST_GROUP_BASE(ScopedWaits, Everywhere){};

TEST(ScopedWaits, end_by_the_deadline_of_the_scope_and_tell_whose_it_was) {
  everywhere([&] {
    Shared shared;
    expect(shared.lock.lock_shared().has_value());
    const auto all = [&] {
      for (int way = 0; way < Shared::kWays; ++way) {
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
    Shared shared;
    expect(shared.lock.lock_shared().has_value());
    for (int way = 0; way < Shared::kWays; ++way) {
      CancelScope scope;
      auto canceller = spawn({.detached = true}, [&scope] {
        static_cast<void>(coir::sleep(1ms));
        scope.cancel();
      });
      const auto waited = shared.wait_in(way);
      expect(!waited && waited.error() == ErrorCode::cancelled && scope.caused(waited.error()));
      const coir::Shield shield(Deadline::never());
      expect(canceller.join().has_value());
    }
  });
}
