// A handle that is stale is asked while the page that it reads is mapped over, as on kernels without madvise: it says so,
// and the thread sanitizer has nothing to say.

#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/runtime.h>
#include <errno.h>

#include <atomic>

#include "tests/support/expectations.h"
#include "tests/support/faults.h"
#include "tests/support/until.h"

namespace stale_handle_faults_test {

using coir::Fiber;
using coir::FiberRef;
using coir::run_until_idle;
using coir::spawn;
using namespace coir::test;

TEST_GROUP_BASE(StaleHandleFaults, Expecting) {};

TEST(StaleHandleFaults, says_so_while_the_stack_is_given_back_by_a_mapping) {
  constexpr int kRounds = 200;
  inject({.call = Call::madvise, .error = ENOSYS, .lasting = true});
  const auto ended = run_until_idle({.workers = 2, .hot_stacks = 1}, [&] {
    std::atomic<bool> over{false};
    std::atomic<int> asked{0}, alive{0};
    for (int round = 0; round < kRounds; ++round) {
      Fiber first = spawn([] {}), second = spawn([] {});
      const FiberRef handles[] = {first, second};
      over = false;
      asked = alive = 0;
      Fiber asks = spawn([&] {
        while (!over) {
          for (const FiberRef& each : handles) alive += each.alive();
          ++asked;
          coir::yield();
        }
        for (const FiberRef& each : handles) expect(!each.alive());
      });
      until([&] { return asked > 0; });
      // One stack stays hot, the other's pages go.
      expect(first.join().has_value() && second.join().has_value());
      over = true;
      expect(asks.join().has_value());
    }
  });
  const unsigned failed = withdraw();
  check();
  CHECK_TRUE(ended.has_value());
  CHECK_TRUE(failed != 0);
}

}  // namespace stale_handle_faults_test
