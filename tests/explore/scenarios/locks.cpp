#include <coir/condition.h>
#include <coir/event.h>
#include <coir/fiber.h>
#include <coir/mutex.h>
#include <coir/once.h>
#include <coir/runtime.h>
#include <coir/rw_lock.h>
#include <coir/semaphore.h>
#include <coir/wait_group.h>

#include "base/biased_lock.h"
#include "tests/explore/explore.h"

// Locks, events and the other things that fibers and threads wait on besides channels.

namespace coir::explore {

namespace {

using std::chrono::milliseconds;

// Inside tells when two are where one may be.
struct Inside {
  Atomic<int> count{0};
  void visit() noexcept {
    require(count.fetch_add(1) == 0);
    count.fetch_sub(1);
  }
};

void mutex_is_handed_over() {
  Mutex mutex;
  Inside inside;
  const auto visit = [&] {
    const auto held = mutex.lock();
    require(held.has_value());
    inside.visit();
  };
  threads(visit, visit, visit);
  require(!mutex.locked());
}

void mutex_timeout_leaves_the_line() {
  Mutex mutex;
  Inside inside;
  const auto visit = [&](Deadline deadline) {
    if (const auto held = mutex.lock(deadline)) inside.visit();
  };
  threads([&] { visit(Deadline::never()); }, [&] { visit(Deadline::after(milliseconds(1))); },
          [&] { visit(Deadline::never()); });
  require(!mutex.locked());
}

template <class Body>
void run_on_one(Body body) {
  require(run_until_idle({.workers = 1, .default_stack = 64 * 1024}, body).has_value());
  require(time_passed() == 0);
}

// A thread takes the mutex while the first in line comes to it: that one stays before the second.
void mutex_keeps_the_line() {
  Mutex mutex;
  int served = 0, passer = 0;
  run_on_one([&] {
    const auto visit = [&](int turn) {
      const auto mine = mutex.lock();
      require(mine && served++ == turn);
    };
    auto held = mutex.lock();
    require(held.has_value());
    Fiber first = spawn([&] { visit(0); }), second = spawn([&] { visit(1); });
    yield();  // both stand in line
    passer = start([](void* of) { require(static_cast<Mutex*>(of)->lock().has_value()); }, &mutex);
    held->unlock();
    require(first.join().has_value() && second.join().has_value());
  });
  join(passer);
  require(served == 2 && !mutex.locked());
}

// A waiter is served within the bound, even if another one behind it has left the line since.
void mutex_passes_over_within_the_bound() {
  Mutex mutex;
  bool served = false;
  run_on_one([&] {
    auto held = mutex.lock();
    require(held.has_value());
    Fiber waiter = spawn([&] {
      const auto mine = mutex.lock();
      require(mine.has_value());
      served = true;
    });
    Fiber leaver = spawn([&] { require(mutex.lock().error() == ErrorCode::cancelled); });
    yield();  // both stand in line
    held->unlock();
    require(leaver.cancel().has_value() && leaver.join().has_value());  // continues here, before the waiter
    require(!served);
    for (unsigned i = 0; i <= Mutex::kMostPassed; ++i) require(mutex.lock().has_value());
    require(served);
    require(waiter.join().has_value());
  });
}

// A notification under the mutex reaches a waiter that tested the condition before.
void condition_loses_no_notification() {
  Mutex mutex;
  Condition changed;
  int stock = 0;
  const auto take = [&] {
    auto held = mutex.lock();
    while (stock == 0) require(changed.wait(*held).has_value());
    --stock;
  };
  threads(take, take, [&] {
    for (int i = 0; i < 2; ++i) {
      auto held = mutex.lock();
      ++stock;
      held->unlock();
      changed.notify_one();
    }
  });
  require(stock == 0 && !mutex.locked());
}

void condition_timeout_holds_the_mutex() {
  Mutex mutex;
  Condition changed;
  Inside inside;
  threads(
      [&] {
        auto held = mutex.lock();
        require(held.has_value());
        static_cast<void>(changed.wait(*held, Deadline::after(milliseconds(1))));
        inside.visit();
      },
      [&] {
        const auto held = mutex.lock();
        require(held.has_value());
        inside.visit();
        changed.notify_all();
      });
  require(!mutex.locked());
}

void event_may_be_destroyed_by_the_waiter() {
  alignas(Event) unsigned char memory[sizeof(Event)];
  auto* const event = new (memory) Event;
  threads(
      [&] {
        require(event->wait().has_value());
        event->~Event();
        // set() does not touch the bytes that are written here instead.
        for (unsigned char& byte : memory) byte = 0x5a;
      },
      [&] { event->set(); });
  for (const unsigned char byte : memory) require(byte == 0x5a);
}

void event_releases_everyone() {
  Event event;
  const auto wait = [&] { require(event.wait().has_value()); };
  threads(wait, wait, [&] { event.set(); });
}

void semaphore_keeps_its_permits() {
  Semaphore permits(1);
  Inside inside;
  const auto visit = [&](Deadline deadline) {
    if (!permits.acquire(deadline)) return;
    inside.visit();
    permits.release();
  };
  threads([&] { visit(Deadline::never()); }, [&] { visit(Deadline::after(milliseconds(1))); },
          [&] { visit(Deadline::never()); });
  require(permits.available() == 1);
}

void wait_group_waits_for_the_last() {
  WaitGroup group;
  Atomic<int> ended{0};
  group.add(2);
  const auto work = [&] {
    ended.fetch_add(1);
    group.done();
  };
  threads(work, work, [&] {
    require(group.wait().has_value());
    require(ended.load() == 2);
  });
}

void once_is_done_once() {
  Once once;
  int times = 0;
  const auto call = [&] {
    require(once.call([&] { ++times; }).has_value());
    require(times == 1);
  };
  threads(call, call, call);
}

// A waiter runs its own body when the first one's has failed.
void once_that_fails_is_tried_again() {
  Once once;
  int calls = 0;
  const auto call = [&] {
    static_cast<void>(once.call([&]() -> std::expected<void, Error> {
      if (++calls == 1) return std::unexpected(Error{ErrorCode::invalid});
      return {};
    }));
  };
  threads(call, call);
  require(calls == 2 && once.done());
}

void rw_lock_keeps_writers_alone() {
  RwLock lock;
  Atomic<int> readers{0}, writers{0};
  const auto read = [&] {
    const auto held = lock.read();
    require(held.has_value());
    readers.fetch_add(1);
    require(writers.load() == 0);
    readers.fetch_sub(1);
  };
  threads(read, read, [&] {
    const auto held = lock.write();
    require(held.has_value());
    require(writers.fetch_add(1) == 0 && readers.load() == 0);
    writers.fetch_sub(1);
  });
}

// The owner and a raider each take two steps inside, and neither finds the other between them.
void biased_lock_excludes() {
  BiasedLock lock;
  Atomic<int> inside{0};
  int count = 0, raids = 0;
  const auto visit = [&] {
    require(inside.fetch_add(1) == 0);
    ++count;
    require(inside.fetch_sub(1) == 1);
  };
  threads(
      [&] {
        for (int i = 0; i < 3; ++i) {
          lock.enter();
          visit();
          lock.leave();
        }
      },
      [&] {
        for (int i = 0; i < 2; ++i) {
          if (lock.raid() != BiasedLock::Raid::entered) continue;
          visit();
          ++raids;
          lock.end_raid();
        }
      });
  require(count == 3 + raids);
}

constexpr Scenario kLocksScenarios[] = {
    {"biased_lock_excludes", biased_lock_excludes},
    {"mutex_is_handed_over", mutex_is_handed_over},
    {"mutex_timeout_leaves_the_line", mutex_timeout_leaves_the_line, {.timeouts = true}},
    {"mutex_keeps_the_line", mutex_keeps_the_line},
    {"mutex_passes_over_within_the_bound", mutex_passes_over_within_the_bound},
    {"condition_loses_no_notification", condition_loses_no_notification},
    {"condition_timeout_holds_the_mutex", condition_timeout_holds_the_mutex, {.timeouts = true}},
    {"event_may_be_destroyed_by_the_waiter", event_may_be_destroyed_by_the_waiter, {.preemptions = 3}},
    {"event_releases_everyone", event_releases_everyone},
    {"semaphore_keeps_its_permits", semaphore_keeps_its_permits, {.timeouts = true}},
    {"wait_group_waits_for_the_last", wait_group_waits_for_the_last},
    {"once_is_done_once", once_is_done_once},
    {"once_that_fails_is_tried_again", once_that_fails_is_tried_again},
    {"rw_lock_keeps_writers_alone", rw_lock_keeps_writers_alone},
};

}  // namespace

std::span<const Scenario> lock_scenarios() noexcept {
  return kLocksScenarios;
}

}  // namespace coir::explore
