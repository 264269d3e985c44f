#include "chooser.h"

#include <stdio.h>
#include <stdlib.h>

namespace coir::explore {

namespace {

constexpr std::uint32_t kFairSteps = 1000;  // no run of interest has one thread run for longer

}  // namespace

void Chooser::be_exhaustive(int preemptions, int delays, bool timeouts) noexcept {
  mode_ = Mode::exhaustive;
  preemptions_ = preemptions;
  delays_ = delays;
  timeouts_ = timeouts;
  trickles_ = false;
  known_ = 0;
}

void Chooser::be_random(std::uint64_t seed, bool delays, bool timeouts) noexcept {
  mode_ = Mode::random;
  random_.state = seed != 0 ? seed : 1;
  delays_ = delays ? 1 : 0;
  timeouts_ = timeouts;
  trickles_ = true;
  sample_ = 0;
  last_steps_ = 100;
}

bool Chooser::replay(const char* decisions) noexcept {
  mode_ = Mode::replayed;
  known_ = 0;
  timeouts_ = trickles_ = false;
  delays_ = 0;
  for (; *decisions == 't' || *decisions == 'd' || *decisions == 'r'; ++decisions) {
    if (*decisions == 't') timeouts_ = true;
    if (*decisions == 'd') delays_ = 1;
    if (*decisions == 'r') trickles_ = true;
  }
  // The digits between dots; `N*` before one repeats it.
  while (*decisions != '\0' && known_ < kMostDecisions) {
    char* end = nullptr;
    unsigned long value = strtoul(decisions, &end, 10);
    if (end == decisions) return false;
    unsigned long times = 1;
    if (*end == '*') {
      times = value;
      decisions = end + 1;
      value = strtoul(decisions, &end, 10);
      if (end == decisions) return false;
    }
    for (; times > 0 && known_ < kMostDecisions; --times) {
      decisions_[known_++].taken = static_cast<std::uint8_t>(value);
    }
    decisions = *end == '.' ? end + 1 : end;
  }
  return true;
}

void Chooser::begin() noexcept {
  at_ = 0;
  steps_ = 0;
  barren_ = false;
  if (mode_ != Mode::random) return;
  known_ = 0;
  ++sample_;
  lowest_ = 0;
  for (int& priority : priority_) priority = kChanges + static_cast<int>(random_.below(1000));
  for (std::uint32_t& step : change_at_) step = random_.below(last_steps_);
}

bool Chooser::next_run() noexcept {
  if (mode_ == Mode::replayed) return false;
  if (mode_ == Mode::random) {
    last_steps_ = steps_ + 1;
    return true;
  }
  // The last decision that leaves another way to go takes it; those after it are made anew.
  for (known_ = at_; known_ > 0; --known_) {
    Decision& last = decisions_[known_ - 1];
    if (last.taken + 1u >= last.count) continue;
    const bool costs = last.taken + 1u >= last.free;
    if (costs && (last.of_delay ? last.delays >= delays_ : last.preemptions >= preemptions_)) continue;
    ++last.taken;
    return true;
  }
  return false;
}

void Chooser::step(int thread) noexcept {
  ++steps_;
  if (mode_ != Mode::random || sample_ % 2 != 0) return;
  for (int i = 0; i < kChanges; ++i) {
    if (change_at_[i] == steps_) priority_[thread] = i;
  }
  if (steps_ % kFairSteps == 0) gives_way(thread);
}

std::size_t Chooser::thread(const std::uint8_t* candidates, std::size_t count, std::size_t free) noexcept {
  if (count <= 1) return 0;
  if (mode_ != Mode::random) return decide(count, free, false);
  const std::size_t taken = by_chance(candidates, count, free);
  if (known_ < kMostDecisions) decisions_[known_++].taken = static_cast<std::uint8_t>(taken);
  return taken;
}

std::size_t Chooser::by_chance(const std::uint8_t* candidates, std::size_t count, std::size_t free) noexcept {
  if (sample_ % 2 != 0) {
    if (free == 1 && random_.below(8) != 0) return 0;
    return random_.below(static_cast<std::uint32_t>(count));
  }
  std::size_t best = 0;
  for (std::size_t i = 1; i < count; ++i) {
    if (priority_[candidates[i]] > priority_[candidates[best]]) best = i;
  }
  return best;
}

bool Chooser::delay() noexcept {
  if (delays_ == 0) return false;
  if (mode_ != Mode::random) return decide(2, 1, true) == 1;
  const bool late = random_.below(4) == 0;
  if (known_ < kMostDecisions) decisions_[known_++].taken = late ? 1 : 0;
  return late;
}

bool Chooser::trickle() noexcept {
  if (!trickles_) return false;  // a late store waits for what forces it out
  if (mode_ == Mode::replayed) return at_ < known_ && decisions_[at_++].taken == 1;
  const bool now = random_.below(16) == 0;
  if (known_ < kMostDecisions) decisions_[known_++].taken = now ? 1 : 0;
  return now;
}

std::size_t Chooser::decide(std::size_t count, std::size_t free, bool of_delay) noexcept {
  if (mode_ == Mode::replayed) {
    const std::size_t taken = at_ < known_ ? decisions_[at_].taken : 0;
    ++at_;
    return taken < count ? taken : 0;
  }
  if (at_ == kMostDecisions) {
    trouble_ = "it takes more decisions than there is room for";
    return 0;
  }
  if (barren_ && at_ == known_) count = 1;
  Decision& here = decisions_[at_];
  if (at_ == known_) {
    here = {.count = static_cast<std::uint8_t>(count),
            .free = static_cast<std::uint8_t>(free),
            .taken = 0,
            .of_delay = of_delay,
            .preemptions = 0,
            .delays = 0};
    if (at_ > 0) {
      const Decision& before = decisions_[at_ - 1];
      const bool paid = before.taken >= before.free;
      here.preemptions = static_cast<std::uint8_t>(before.preemptions + (paid && !before.of_delay));
      here.delays = static_cast<std::uint8_t>(before.delays + (paid && before.of_delay));
    }
    ++known_;
  } else if ((!barren_ && here.count != count) || here.of_delay != of_delay) {
    trouble_ = "it does something else when the same is decided";
    return 0;
  }
  ++at_;
  return here.taken;
}

void Chooser::print_decisions() const noexcept {
  const std::size_t count = mode_ == Mode::exhaustive ? at_ : known_;
  if (timeouts_) putchar('t');
  if (delays_ != 0) putchar('d');
  if (trickles_) putchar('r');
  constexpr std::size_t kShown = 2000;
  if (count > kShown) {
    printf("(too long to be shown)");
    return;
  }
  for (std::size_t i = 0; i < count;) {
    std::size_t same = 1;
    while (i + same < count && decisions_[i + same].taken == decisions_[i].taken) ++same;
    if (i != 0) putchar('.');
    if (same > 1) printf("%zu*", same);
    printf("%u", decisions_[i].taken);
    i += same;
  }
}

}  // namespace coir::explore
