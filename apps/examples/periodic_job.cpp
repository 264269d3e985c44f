// A job that runs once an interval beside the others, until the scope that it runs in is over.

#include <coir/event.h>
#include <coir/every.h>
#include <coir/nursery.h>
#include <coir/runtime.h>
#include <stdio.h>

using namespace std::chrono_literals;

int main() {
  return coir::run({.workers = 1}, [] {
    coir::Nursery nursery;
    int ticks = 0;
    coir::Event enough;
    coir::Task<void> clock = nursery.spawn({.name = "clock"}, [&] {
      return coir::every(5ms, [&] {
        printf("tick %d\n", ++ticks);
        if (ticks == 3) enough.set();
      });
    });
    static_cast<void>(enough.wait());
    static_cast<void>(clock.cancel("enough"));
    const auto ended = clock.await();
    printf("the clock stopped: %s\n", ended ? "done" : coir::describe(ended.error()));
    printf("an interval of zero: %s\n", coir::describe(coir::every(0s, [] {}).error()));
  });
}
