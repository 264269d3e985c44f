#include <coir/mcp/client.h>

#include <coir/cancel_scope.h>
#include <coir/mutex.h>
#include <coir/nursery.h>

namespace coir::mcp {

namespace {

struct FanOut {
  FanOut(const FanOutOptions& given, Nursery& all) noexcept : options(given), nursery(all) {}

  const FanOutOptions& options;
  Nursery& nursery;
  Mutex telling;
  Atomic<std::size_t> answered = 0;

  void run(Branch& branch) noexcept;
  void tell(Branch& branch) noexcept;
};

void FanOut::tell(Branch& branch) noexcept {
  if (options.came == nullptr) return;
  // A branch that was cancelled is told of as well.
  const Shield shield(Deadline::never());
  const auto held = telling.lock();
  options.came(options.context, branch);
}

void FanOut::run(Branch& branch) noexcept {
  const std::int64_t begun = monotonic_ns();
  branch.outcome = branch.client->call(branch.tool, branch.arguments, {.deadline = Deadline::after(branch.within)});
  branch.took = std::chrono::milliseconds((monotonic_ns() - begun) / 1'000'000);
  if (branch.outcome) answered.fetch_add(1, std::memory_order_relaxed);
  const bool wins = options.spread == Spread::race && branch.outcome && !branch.outcome->is_error();
  if (wins) nursery.cancel("another was first");
  tell(branch);
}

}  // namespace

std::expected<std::size_t, Error> fan_out(std::span<Branch> branches, const FanOutOptions& options) noexcept {
  CancelScope scope(options.deadline);
  Nursery nursery{{.limit = options.limit}};
  FanOut whole(options, nursery);
  for (Branch& branch : branches) {
    const auto started = nursery.start({.name = "branch"}, [&whole, &branch] { whole.run(branch); });
    if (started) continue;
    branch.outcome = std::unexpected(Failure(started.error()));
    whole.tell(branch);
  }
  const auto joined = nursery.join();
  if (!joined && !scope.caused(joined.error())) return std::unexpected(joined.error());
  return whole.answered.load(std::memory_order_relaxed);
}

}  // namespace coir::mcp
