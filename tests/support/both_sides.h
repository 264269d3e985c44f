#pragma once

#include <CppUTest/TestHarness.h>

#include <stdio.h>

#include <atomic>

#include <coir/program.h>

#if !(defined(COIR_NO_ASYNC) && COIR_NO_ASYNC)
#include "tests/support/watchdog.h"
#endif

namespace coir::test {

// BothSides is the group of tests whose promises hold on a plain thread and on fibers alike:
//
//   TEST_GROUP_BASE(File, BothSides) {};
//   TEST(File, is_read) { both_sides([&] { expect(...); }); }
class BothSides : public Utest {
 public:
  // expect may be called from fibers, where CppUTest's own checks may not. It says which line was wrong.
  void expect(bool right, int line = __builtin_LINE()) noexcept {
    if (right) return;
    fprintf(stderr, "line %d is wrong\n", line);
    ++wrong;
  }

  // both_sides runs the body on the test's thread, then as a fiber with one worker and with two. Test thread only.
  template <class Body>
  void both_sides(Body body) {
    body();
    LONGS_EQUAL(0, wrong);
#if !(defined(COIR_NO_ASYNC) && COIR_NO_ASYNC)
    for (const unsigned workers : {1u, 2u}) {
      CHECK_TRUE(run_until_idle({.workers = workers}, body).has_value());
      LONGS_EQUAL(0, wrong);
    }
#endif
  }

 protected:
  std::atomic<int> wrong{0};

#if !(defined(COIR_NO_ASYNC) && COIR_NO_ASYNC)
 private:
  Watchdog watchdog_{150, "a test on both sides"};
#endif
};

}  // namespace coir::test
