#pragma once

#include <CppUTest/TestHarness.h>
#include <coir/runtime.h>

#include "tests/support/expectations.h"

namespace coir::test {

// Everywhere is the group of tests whose promises hold with both pollers, with one worker and with two:
//
//   TEST_GROUP_BASE(Wait, Everywhere) {};
//   TEST(Wait, ends_at_once) { everywhere([&] { expect(...); }); }
class Everywhere : public Expecting {
 public:
  // everywhere runs the body as a fiber in each of the runs. Test thread only.
  template <class Body>
  void everywhere(Body body) {
    for (const bool ppoll : {false, true}) {
      for (const unsigned workers : {1u, 2u}) {
        const auto ended = run_until_idle({.workers = workers, .force_ppoll = ppoll}, body);
        check();
        CHECK_TRUE(ended.has_value());
      }
    }
  }
};

}  // namespace coir::test
