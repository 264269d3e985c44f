#include <coir/config.h>
#include <coir/fiber_local.h>
#include <coir/program.h>

#include <CppUTest/TestHarness.h>
#include <signal.h>

#include <new>
#include <string_view>

#if !COIR_NO_ASYNC
#include <coir/fiber.h>
#include <coir/nursery.h>
#include <coir/worker_stack.h>
#endif

#include "tests/support/both_sides.h"
#include "tests/support/child.h"

namespace fiber_local_test {

using coir::FiberLocal;

namespace {

constinit FiberLocal<int> g_number;
constinit FiberLocal<const char*> g_name;

[[gnu::noinline]] int number_here() {
  const int* const found = g_number.get();
  return found != nullptr ? *found : -1;
}

}  // namespace

TEST_GROUP_BASE(FiberLocal, coir::test::BothSides) {};

TEST(FiberLocal, the_innermost_binding_counts_and_the_outer_one_comes_back) {
  both_sides([&] {
    expect(number_here() == -1 && g_name.get() == nullptr);
    const FiberLocal<int>::Binding outer(g_number, 1);
    const FiberLocal<const char*>::Binding name(g_name, "outer");
    {
      const FiberLocal<int>::Binding inner(g_number, 2);
      expect(number_here() == 2);
      ++*g_number.get();
      expect(number_here() == 3);
      expect(*g_name.get() == std::string_view("outer"));
    }
    expect(number_here() == 1);
  });
}

TEST(FiberLocal, bindings_that_end_out_of_order_end_the_process) {
  const auto end = coir::test::in_child([] {
    alignas(FiberLocal<int>::Binding) char room[sizeof(FiberLocal<int>::Binding)];
    auto* const first = new (room) FiberLocal<int>::Binding(g_number, 1);
    const FiberLocal<int>::Binding second(g_number, 2);
    first->~Binding();
    return 0;
  });
  LONGS_EQUAL(SIGABRT, end.signal);
  CHECK_TRUE(end.wrote("coir: a fiber-local binding ends before one made later"));
}

#if !COIR_NO_ASYNC
TEST(FiberLocal, each_fiber_has_its_own_also_after_it_has_changed_threads) {
  for (const bool migrate : {false, true}) {
    const auto ended = coir::run_until_idle({.workers = 2, .migrate = migrate}, [&] {
      const FiberLocal<int>::Binding mine(g_number, 100);
      coir::Nursery nursery;
      for (int i = 0; i < 20; ++i) {
        nursery.start([&, i] {
          expect(number_here() == -1);  // it inherits none
          const FiberLocal<int>::Binding bound(g_number, i);
          for (int turn = 0; turn < 10; ++turn) {
            coir::yield();
            expect(number_here() == i);
            coir::on_worker_stack([&] { expect(number_here() == i); });
          }
        });
      }
      expect(nursery.join().has_value());
      expect(number_here() == 100);
    });
    check();
    CHECK_TRUE(ended.has_value());
  }
}
#endif

}  // namespace fiber_local_test
