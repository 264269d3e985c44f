#pragma once

namespace coir::test {

// Watchdog ends the process when a test hangs: it writes `what` and the list of all fibers to standard error and
// aborts. It is no measurement: a machine that is busy with twenty other things is no hang. CTest waits longer still
// (tests/cpputest.cmake).
class Watchdog {
 public:
  static constexpr unsigned kSeconds = 540;

  explicit Watchdog(const char* what) noexcept;
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
};

}  // namespace coir::test
