// A deadline is in force for everything that is called inside, without a parameter, and the error tells whose deadline passed.

#include <coir/cancel_scope.h>
#include <coir/fiber.h>
#include <coir/runtime.h>
#include <stdio.h>

using namespace std::chrono_literals;

namespace {

std::expected<void, coir::Error> talk_to_a_silent_peer() {
  return coir::sleep(24h);
}

}  // namespace

int main() {
  return coir::run([] {
    const auto outcome = coir::with_timeout(20ms, [] { return talk_to_a_silent_peer(); });
    printf("with_timeout: %s\n", outcome ? "done" : coir::describe(outcome.error()));

    coir::CancelScope request(coir::Deadline::after(20ms));
    const auto inner = coir::with_timeout(1h, [] { return talk_to_a_silent_peer(); });
    printf("inside a shorter one: %s, %s\n", inner ? "done" : coir::describe(inner.error()),
           !inner && request.caused(inner.error()) ? "by the request's deadline" : "by its own");

    {
      // The goodbye may still be said.
      coir::Shield shield(coir::Deadline::after(1s));
      printf("shielded: %s\n", coir::sleep(1ms) ? "done" : "cut short");
    }

    long turns = 0;
    while (coir::check_cancelled()) ++turns;
    printf("a computation ends %s\n", turns == 0 ? "at once" : "late");
  });
}
