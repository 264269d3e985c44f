#pragma once

// A group of fibers reports that it is well.
//
//   Heartbeat collecting("collector", 30s);
//   collecting.report();                          // after each round

#include <coir/port/needs_fibers.h>

#include <cstdint>

#include <coir/atomic.h>
#include <coir/detail/chrono.h>
#include <coir/life_watch.h>

namespace coir {

// Heartbeat is a group of fibers that promises to report at least once each period, for as long as it exists. LifeWatch
// (coir/life_watch.h) names a group that is late, and says so to its program. Allocates nothing.
class Heartbeat {
 public:
  // The constructor counts as a report. `name` must live as long as the program. From a fiber or a thread, as the
  // destructor.
  Heartbeat(const char* name, std::chrono::nanoseconds period) noexcept;
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  // report says that the group is well now. Never blocks; costs a look at the clock. Any context.
  void report() noexcept;

  // promise changes the period. Any context.
  void promise(std::chrono::nanoseconds period) noexcept {
    period_ns_.store(period.count(), std::memory_order_relaxed);
  }

 private:
  friend bool heartbeats_in_time(const LifeWatch::Tell& tell) noexcept;

  const char* name_;
  SharedAtomic<std::int64_t> period_ns_, reported_ns_;
  bool told_ = false;  // that it is late; under the lock of the list
  Heartbeat* next_;
};

}  // namespace coir
