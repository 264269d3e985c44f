#include "mcp/access/verdicts.h"

#include <algorithm>

namespace coir::mcp {

bool Verdicts::find(const Digest& token, std::int64_t now_ns, Judgement& into) noexcept {
  const Locked locked(lock_);
  for (const Place& each : places_) {
    if (each.until_ns <= now_ns || each.token != token) continue;
    into = {.verdict = each.verdict, .who = each.who};
    return true;
  }
  return false;
}

void Verdicts::keep(const Digest& token, std::int64_t now_ns, const Judgement& judged) noexcept {
  std::int64_t seconds = lifetime_.count();
  if (judged.verdict != Verdict::unknown) seconds = std::min(seconds, judged.left_s);
  if (seconds <= 0) return;
  const Locked locked(lock_);
  // The place of the same token, else one that is over, else one of nobody's, else the one that is over first.
  const auto worth = [&](const Place& each) {
    if (each.token == token) return 0;
    if (each.until_ns <= now_ns) return 1;
    return each.verdict == Verdict::unknown ? 2 : 3;
  };
  Place& place = *std::ranges::min_element(places_, [&](const Place& a, const Place& b) {
    return worth(a) != worth(b) ? worth(a) < worth(b) : a.until_ns < b.until_ns;
  });
  // An invented token takes no good token's place.
  if (judged.verdict == Verdict::unknown && worth(place) == 3) return;
  place = {.token = token, .until_ns = now_ns + seconds * 1'000'000'000, .verdict = judged.verdict, .who = judged.who};
}

}  // namespace coir::mcp
