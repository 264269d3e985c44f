// Ask a server that may be slow; after a moment ask a second one as well; whoever answers first wins.

#include <coir/fiber.h>
#include <coir/race.h>
#include <coir/runtime.h>
#include <stdio.h>

using namespace std::chrono_literals;

namespace {

using Answer = std::expected<const char*, coir::Error>;

Answer ask(const char* server, std::chrono::nanoseconds delay) {
  if (auto slept = coir::sleep(delay); !slept) {
    printf("%s: %s\n", server, coir::describe(slept.error()));
    return std::unexpected(slept.error());
  }
  return server;
}

Answer ask_with_fallback(std::chrono::nanoseconds delay_of_the_first, std::chrono::nanoseconds patience) {
  return coir::race([&] { return ask("first server", delay_of_the_first); },
                    [&]() -> Answer {
                      if (auto slept = coir::sleep(patience); !slept) return std::unexpected(slept.error());
                      return ask("second server", 10ms);
                    });
}

}  // namespace

int main() {
  return coir::run([] {
    printf("answered by the %s\n", ask_with_fallback(1ms, 1h).value_or("none"));
    printf("answered by the %s\n", ask_with_fallback(1h, 50ms).value_or("none"));

    // any passes over failures.
    const Answer answer = coir::any([]() -> Answer { return std::unexpected(coir::Error(coir::ErrorCode::closed)); },
                                    [] { return ask("third server", 1ms); });
    printf("answered by the %s\n", answer.value_or("none"));
  });
}
