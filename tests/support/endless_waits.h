#pragma once

#include <coir/condition.h>
#include <coir/event.h>
#include <coir/rw_lock.h>
#include <coir/select.h>
#include <coir/semaphore.h>
#include <coir/wait_group.h>

#include <expected>

#include "pipe.h"

namespace coir::test {

template <class T>
std::expected<void, Error> outcome_of(const std::expected<T, Error>& outcome) {
  if (!outcome) return std::unexpected(outcome.error());
  return {};
}

// EndlessWaits has one of each thing to wait for, none of which ever comes. Somebody must hold `lock` shared.
struct EndlessWaits {
  Mutex own;
  Condition condition;
  Semaphore semaphore{0};
  Event event;
  WaitGroup group{1};
  RwLock lock;
  Channel<int> channel;
  Pipe pipe;

  static constexpr int kWays = 9;

  std::expected<void, Error> wait_in(int way) {
    int value = 0;
    switch (way) {
      case 0: {
        auto held = own.lock();
        return held ? condition.wait(*held) : outcome_of(held);
      }
      case 1:
        return semaphore.acquire();
      case 2:
        return event.wait();
      case 3:
        return group.wait();
      case 4:
        return outcome_of(lock.write());
      case 5:
        return channel.send(1);
      case 6:
        return outcome_of(channel.receive());
      case 7:
        return outcome_of(
            select({Case::receive(channel, value), Case::opened(event), Case::after(std::chrono::hours(24))}));
      default:
        return outcome_of(select({Case::receive(channel, value), Case::readable(pipe.reader)}));
    }
  }
};

}  // namespace coir::test
