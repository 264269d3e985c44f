#pragma once

namespace coir::test {

// Watchdog ends the process when a test hangs: it writes `what` and the list of all fibers to standard error and
// aborts. That is a bound for the busiest machine, a minute less than CTest's.
class Watchdog {
 public:
  explicit Watchdog(const char* what) noexcept;
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
};

}  // namespace coir::test
