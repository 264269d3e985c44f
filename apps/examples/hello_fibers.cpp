// Two fibers take turns, and a third one has a result.

#include <coir/fiber.h>
#include <coir/runtime.h>
#include <stdio.h>

namespace {

void count(const char* name) {
  for (int i = 1; i <= 3; ++i) {
    printf("%s %d\n", name, i);
    coir::yield();
  }
}

}  // namespace

int main() {
  return coir::run({.workers = 1}, [] {
    coir::Fiber tick = coir::spawn({.name = "tick"}, [] { count("tick"); });
    coir::Fiber tock = coir::spawn({.name = "tock"}, [] { count("tock"); });
    static_cast<void>(tick.join());
    static_cast<void>(tock.join());

    coir::Task<int> answer = coir::spawn({.name = "thinker"}, [] { return 42; });
    printf("the answer is %d\n", answer.await().value_or(0));
  });
}
