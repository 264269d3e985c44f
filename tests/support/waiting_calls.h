#pragma once

#include <coir/broadcast.h>
#include <coir/budget.h>
#include <coir/cancel_scope.h>
#include <coir/channel.h>
#include <coir/condition.h>
#include <coir/event.h>
#include <coir/fiber.h>
#include <coir/mutex.h>
#include <coir/nursery.h>
#include <coir/once.h>
#include <coir/rw_lock.h>
#include <coir/select.h>
#include <coir/semaphore.h>
#include <coir/wait.h>
#include <coir/wait_group.h>

namespace coir::test {

// WaitingCalls is one of each call that can wait, in a state in which it need not: it succeeds at once, or fails at once
// because it was given no time or its scope is over. Each may be repeated for ever. To be used by one fiber.
struct WaitingCalls {
  static constexpr int kWays = 24;

  Event set, unset;
  Channel<int> unbounded{{.capacity = kUnbounded}}, empty, closed;
  Semaphore permits{1}, none{0};
  Mutex mutex, held;
  Mutex::Guard holds = std::move(*held.lock());
  Condition condition;
  Once once;
  RwLock lock;
  WaitGroup finished, group{1};
  Broadcast<int> broadcast;
  Fiber sleeper = spawn([this] { static_cast<void>(unset.wait()); });
  Nursery full{{.limit = 1}};
  int value = 0;

  WaitingCalls() {
    static_cast<void>(full.start([this] { static_cast<void>(unset.wait()); }));
    set.set();
    closed.close();
    static_cast<void>(once.call([] {}));
  }
  ~WaitingCalls() {
    unset.set();
    static_cast<void>(sleeper.join());
  }

  // ended runs a call in a scope that is cancelled, or whose deadline has passed.
  template <class Call>
  static void ended(bool cancels, Call call) {
    CancelScope scope(cancels ? Deadline::never() : Deadline::at_ns(1));
    if (cancels) scope.cancel();
    static_cast<void>(call());
  }

  void call(int way) {
    switch (way) {
      case 0:
        return static_cast<void>(set.wait());
      case 1:
        return static_cast<void>(unset.wait(Deadline::now()));
      case 2:
        return static_cast<void>(unbounded.send(1));
      case 3:
        return static_cast<void>(empty.receive(Deadline::now()));
      case 4:
        return static_cast<void>(closed.receive());
      case 5:
        return permits.release(permits.acquire() ? 1u : 0u);
      case 6:
        return static_cast<void>(none.acquire(1, Deadline::now()));
      case 7:
        return static_cast<void>(mutex.lock());
      case 8:
        return static_cast<void>(held.lock(Deadline::now()));
      case 9:
        return static_cast<void>(once.call([] {}));
      case 10:
        return static_cast<void>(lock.read());
      case 11:
        return static_cast<void>(finished.wait());
      case 12:
        return static_cast<void>(group.wait(Deadline::now()));
      case 13:
        return static_cast<void>(broadcast.publish(1));
      case 14:
        return static_cast<void>(sleeper.join(Deadline::now()));
      case 15:
        return static_cast<void>(select({Case::receive(empty, value), Case::opened(set)}));
      case 16:
        return static_cast<void>(select({Case::receive(empty, value), Case::otherwise()}));
      case 17:
        return ended(true, [] { return sleep(std::chrono::hours(1)); });
      case 18:
        return ended(false, [] { return sleep(std::chrono::hours(1)); });
      case 19:
        return ended(false, [this] { return unset.wait(); });
      case 20:
        return ended(true, [this] { return condition.wait(holds); });
      case 21:
        return ended(true, [] { return wait(0, Direction::readable); });
      case 22:
        return ended(true, [] {
          const Awaited both[] = {{0}, {0, Direction::writable}};
          return wait_several(both, Deadline::never());
        });
      default:
        return ended(true, [this] { return full.spawn([] {}).started(); });
    }
  }
};

}  // namespace coir::test
