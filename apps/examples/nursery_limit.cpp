// A nursery owns what is spawned in it: never more than three at work, nobody left behind, the first failure reported
// once.

#include <coir/nursery.h>
#include <coir/runtime.h>
#include <stdio.h>

#include <atomic>

using namespace std::chrono_literals;

namespace {

std::atomic<int> at_work{0}, most{0}, done{0};

std::expected<void, coir::Error> work(int number) {
  const int now = ++at_work;
  for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
  }
  auto slept = coir::sleep(1ms);
  --at_work;
  if (!slept) return slept;
  if (number == 13) return std::unexpected(coir::Error(coir::ErrorCode::invalid));
  ++done;
  return {};
}

std::expected<void, coir::Error> work_on(int count) {
  coir::Nursery nursery{{.limit = 3}};
  nursery.defer([] { printf("the last child has ended\n"); });
  nursery.on_error([](coir::Error error) -> std::expected<void, coir::Error> {
    printf("a child failed: %s\n", coir::describe(error));
    return std::unexpected(error);
  });
  // Waits for room; a nursery that has failed takes more, but they find themselves cancelled.
  for (int i = 1; i <= count && !coir::cancelled(); ++i) nursery.start([i] { return work(i); });
  return nursery.join();
}

}  // namespace

int main() {
  return coir::run([] {
    const auto ten = work_on(10);
    printf("%d of 10 done, %s at a time: %s\n", done.load(), most <= 3 ? "at most 3" : "too many",
           ten ? "fine" : "failed");
    const auto hundred = work_on(100);
    printf("%s\n", hundred ? "fine" : "failed");
  });
}
