// Several lookups at once: the results come in the order of the calls, and the first failure calls the others off.

#include <coir/all.h>
#include <coir/fiber.h>
#include <coir/runtime.h>
#include <stdio.h>

#include <span>

using namespace std::chrono_literals;

namespace {

// Stands for a request over the network.
std::expected<int, coir::Error> price(const char* fruit, std::chrono::milliseconds patience) {
  if (auto slept = coir::sleep(patience); !slept) {
    printf("%s: %s\n", fruit, coir::describe(slept.error()));
    return std::unexpected(slept.error());
  }
  if (fruit[0] == 'q') return std::unexpected(coir::Error(coir::ErrorCode::closed));
  return static_cast<int>(patience.count());
}

}  // namespace

int main() {
  return coir::run([] {
    const auto prices = coir::all([] { return price("apple", 30ms); }, [] { return price("banana", 10ms); },
                                  [] { return price("cherry", 20ms); });
    if (prices) {
      const auto& [apple, banana, cherry] = *prices;
      printf("apple %d, banana %d, cherry %d\n", apple, banana, cherry);
    }

    const auto failed = coir::all([] { return price("apple", 1h); }, [] { return price("quince", 1ms); });
    if (!failed) printf("no prices: %s\n", coir::describe(failed.error()));

    int numbers[] = {1, 2, 3, 4, 5, 6, 7, 8};
    int squares[8] = {};
    const auto square = [](int number) {
      coir::yield();
      return number * number;
    };
    if (coir::all_of(std::span(numbers), std::span(squares), square, {.limit = 3})) {
      for (const int each : squares) printf("%d ", each);
      printf("\n");
    }
  });
}
