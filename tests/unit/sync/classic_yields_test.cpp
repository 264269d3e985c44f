#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/runtime.h>

#include <atomic>

namespace classic_yields_test {

using coir::run_until_idle;
using coir::spawn;

TEST_GROUP(ClassicYields) {};

TEST(ClassicYields, a_hundred_fibers_of_a_thousand_yields_are_a_hundred_thousand) {
  for (const unsigned workers : {1u, 2u, 4u}) {
    std::atomic<int> yields{0};
    const auto ended = run_until_idle({.workers = workers}, [&] {
      for (int i = 0; i < 100; ++i) {
        spawn([&yields] {
          for (int k = 0; k < 1'000; ++k) {
            coir::yield();
            ++yields;
          }
        }).detach();
      }
    });
    CHECK_TRUE(ended.has_value());
    LONGS_EQUAL(100'000, yields);
  }
}

}  // namespace classic_yields_test
