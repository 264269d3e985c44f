#pragma once

#include <CppUTest/TestHarness.h>
#include <coir/runtime.h>

#include <atomic>

#include "tests/support/watchdog.h"

namespace coir::test {

// Everywhere is the group of tests whose promises hold with both pollers, with one worker and with two:
//
//   TEST_GROUP_BASE(Wait, Everywhere) {};
//   TEST(Wait, ends_at_once) { everywhere([&] { expect(...); }); }
class Everywhere : public Utest {
 public:
  // expect may be called from fibers, where CppUTest's own checks may not: they leave by longjmp.
  void expect(bool right) noexcept { wrong += !right; }

  // everywhere runs the body as a fiber in each of the runs. Test thread only.
  template <class Body>
  void everywhere(Body body) {
    for (const bool ppoll : {false, true}) {
      for (const unsigned workers : {1u, 2u}) {
        CHECK_TRUE(run_until_idle({.workers = workers, .force_ppoll = ppoll}, body).has_value());
        LONGS_EQUAL(0, wrong);
      }
    }
  }

 protected:
  std::atomic<int> wrong{0};

 private:
  Watchdog watchdog_{150, "a test of both pollers"};
};

}  // namespace coir::test
