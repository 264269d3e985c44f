// Three pool fibers, a backlog of four: a job more waits for room, or is told to come again.

#include <coir/fiber.h>
#include <coir/pool.h>
#include <coir/runtime.h>
#include <stdio.h>

#include <atomic>

using namespace std::chrono_literals;

int main() {
  return coir::run([] {
    std::atomic<int> sum{0};
    {
      coir::Pool<4> pool({.fibers = 3});
      for (int i = 1; i <= 20; ++i) {
        const auto taken = pool.submit([&sum, i] {
          static_cast<void>(coir::sleep(1ms));
          sum += i;
        });
        if (!taken) printf("refused: %s\n", coir::describe(taken.error()));
      }
      printf("drained: %s\n", pool.close() ? "every job succeeded" : "a job failed");
      printf("the sum is %d\n", sum.load());
    }

    std::atomic<bool> go{false};
    coir::Pool<1> busy({.fibers = 1});
    const auto job = [&go] {
      while (!go) static_cast<void>(coir::sleep(1ms));
    };
    static_cast<void>(busy.submit(job));
    static_cast<void>(busy.submit(job));  // in the backlog once the worker has taken the first
    printf("one more: %s\n", coir::describe(busy.try_submit(job).error()));
    go = true;
    static_cast<void>(busy.close());
    printf("after close: %s\n", coir::describe(busy.try_submit(job).error()));
  });
}
