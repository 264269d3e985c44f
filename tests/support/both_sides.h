#pragma once

#include <CppUTest/TestHarness.h>

#include <coir/config.h>
#include <coir/program.h>

#include "tests/support/expectations.h"

namespace coir::test {

// BothSides is the group of tests whose promises hold on a plain thread and on fibers alike:
//
//   TEST_GROUP_BASE(File, BothSides) {};
//   TEST(File, is_read) { both_sides([&] { expect(...); }); }
class BothSides : public Expecting {
 public:
  // both_sides runs the body on the test's thread, then as a fiber with one worker and with two. Test thread only.
  template <class Body>
  void both_sides(Body body) {
    body();
    check();
#if !COIR_NO_ASYNC
    for (const unsigned workers : {1u, 2u}) {
      const auto ended = run_until_idle({.workers = workers}, body);
      check();
      CHECK_TRUE(ended.has_value());
    }
#endif
  }
};

}  // namespace coir::test
