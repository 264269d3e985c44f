#include "mcp/fan_out/fan_out_part.h"

#include <coir/detail/idle_stack.h>
#include <coir/fiber.h>
#include <coir/mcp/detail/account.h>

#include <algorithm>
#include <memory>
#include <new>

#include "base/charged.h"

namespace coir::mcp {

namespace detail {

namespace {

constexpr std::size_t bytes_of(std::size_t parts) noexcept {
  return sizeof(FanOut) + parts * sizeof(FanOutPart);
}
static_assert(sizeof(FanOut) % alignof(FanOutPart) == 0);

}  // namespace

void FanOut::tell(Branch& branch) noexcept {
  if (!options.came) return;
  // A branch that was cancelled is told of as well.
  const Shield shield(Deadline::never());
  const auto held = telling.lock();
  options.came(branch);
}

// end is a part's last.
void FanOut::end(FanOutPart& part) noexcept {
  Branch& branch = *part.branch;
  branch.took = std::chrono::milliseconds((monotonic_ns() - part.begun_ns) / 1'000'000);
  if (branch.outcome) answered.fetch_add(1, std::memory_order_relaxed);
  const bool wins = options.spread == Spread::race && branch.outcome && !branch.outcome->is_error();
  if (wins) {
    is_won.store(true, std::memory_order_relaxed);
    group.cancel("another was first");
    news.set();
  }
  tell(branch);
  {
    const Locked locked(lock);
    part.state = FanOutPart::State::ended;
  }
  // release pairs with the acquire in attend: the outcome is there.
  if (open.fetch_sub(1, std::memory_order_release) == 1) news.set();
}

// woken runs on a worker's own stack.
void FanOut::woken(RestingWait& resting) noexcept {
  auto& part = static_cast<FanOutPart&>(resting);
  FanOut& whole = *part.whole;
  {
    const Locked locked(whole.lock);
    part.state = FanOutPart::State::woken;
    whole.wakes.fetch_add(1, std::memory_order_relaxed);
  }
  whole.news.set();
  // release pairs with the acquire in attend: nothing of the whole is touched from here on.
  whole.wakes.fetch_sub(1, std::memory_order_release);
}

Deadline FanOut::next_deadline() noexcept {
  Deadline next;
  const Locked locked(lock);
  for (const FanOutPart& each : parts) {
    if (each.state == FanOutPart::State::rests) next = std::min(next, each.rests_until());
  }
  return next;
}

// take_up gives a fiber to each part that was woken or whose time is over: waiting tells it so.
void FanOut::take_up() noexcept {
  for (FanOutPart& part : parts) {
    {
      const Locked locked(lock);
      const bool late = part.state == FanOutPart::State::rests && part.rests_until().passed();
      if (late && disarm_resting_wait(part)) part.state = FanOutPart::State::woken;
      if (part.state != FanOutPart::State::woken) continue;
      part.state = FanOutPart::State::runs;
    }
    const auto started = group.start({.name = "branch"}, [&part] { part.take_answer(); });
    if (started) continue;
    part.sent.drop();
    part.branch->outcome = std::unexpected(Failure(started.error()));
    end(part);
  }
}

// stop ends all parts that rest. Those that run are the nursery's.
void FanOut::stop(Error why) noexcept {
  {
    const Locked locked(lock);
    is_over = true;
  }
  for (FanOutPart& part : parts) {
    for (;;) {
      {
        const Locked locked(lock);
        if (part.state != FanOutPart::State::rests || disarm_resting_wait(part)) break;
      }
      // Its wake is about to run.
      yield();
    }
    {
      const Locked locked(lock);
      if (part.state != FanOutPart::State::rests && part.state != FanOutPart::State::woken) continue;
    }
    part.sent.drop();
    part.branch->outcome = std::unexpected(Failure(why));
    end(part);
  }
}

// attend is the owner's part, until none rests. Errors: what has ended the wait.
std::expected<void, Error> FanOut::attend() noexcept {
  while (open.load(std::memory_order_acquire) != 0) {
    // Requests and fibers that were started went deeper than this wait does.
    if (!news.is_set()) coir::detail::give_back_idle_stack();
    const auto heard = news.wait(next_deadline());
    if (!heard && heard.error().ends_waits()) {
      Error why = heard.error();
      why.scope = 0;
      group.cancel("its caller has ended");
      stop(why);
      return heard;
    }
    news.reset();
    if (is_won.load(std::memory_order_relaxed)) {
      stop(ErrorCode::cancelled);
      break;
    }
    take_up();
  }
  return {};
}

FanOut* FanOut::make(std::span<Branch> branches, const FanOutOptions& options) noexcept {
  void* const memory = take_charged(account::mcp, bytes_of(branches.size()));
  if (memory == nullptr) return nullptr;
  auto* const parts = reinterpret_cast<FanOutPart*>(static_cast<FanOut*>(memory) + 1);
  auto* const whole = ::new (memory) FanOut(options, {parts, branches.size()});
  whole->open.store(branches.size(), std::memory_order_relaxed);
  for (std::size_t i = 0; i < branches.size(); ++i) {
    FanOutPart& part = *::new (parts + i) FanOutPart;
    part.whole = whole;
    part.branch = &branches[i];
  }
  return whole;
}

void FanOut::destroy(FanOut* whole) noexcept {
  const std::size_t bytes = bytes_of(whole->parts.size());
  std::destroy(whole->parts.begin(), whole->parts.end());
  std::destroy_at(whole);
  give_charged(account::mcp, whole, bytes);
}

// start begins each part's time with its fiber: where there is a limit it waits for room.
[[gnu::noinline]] void FanOut::start() noexcept {
  const std::int64_t begun_ns = monotonic_ns();
  for (FanOutPart& part : parts) {
    part.begun_ns = options.limit == 0 ? begun_ns : monotonic_ns();
    part.deadline = std::min(Deadline::after(part.branch->within), options.deadline);
    const auto started = group.start({.name = "branch"}, [&part] { part.run(); });
    if (started) continue;
    part.branch->outcome = std::unexpected(Failure(started.error()));
    end(part);
  }
}

// finish waits for the parts' fibers, and returns how many have answered.
[[gnu::noinline]] std::expected<std::size_t, Error> FanOut::finish(std::expected<void, Error> attended) noexcept {
  auto joined = group.join();
  if (joined && !is_won.load(std::memory_order_relaxed)) joined = attended;
  while (wakes.load(std::memory_order_acquire) != 0) yield();
  if (!joined) return std::unexpected(joined.error());
  return answered.load(std::memory_order_relaxed);
}

}  // namespace detail

std::expected<std::size_t, Error> fan_out(std::span<Branch> branches, const FanOutOptions& options) noexcept {
  detail::FanOut* const whole = detail::FanOut::make(branches, options);
  if (whole == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  whole->start();
  const auto answered = whole->finish(whole->attend());
  detail::FanOut::destroy(whole);
  return answered;
}

}  // namespace coir::mcp
