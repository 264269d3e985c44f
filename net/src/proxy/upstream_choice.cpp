// Which server of a group is asked, and which is left alone for a while. Declared in proxy/upstream.h.
#include "proxy/upstream.h"

#include <algorithm>

namespace coir::http {
namespace {

// mixed is SplitMix64's last step (Steele, Lea, Flood 2014).
std::uint64_t mixed(std::uint64_t value) noexcept {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
  value = (value ^ value >> 27) * 0x94d049bb133111eb;
  return value ^ value >> 31;
}

// score is a server's for a key: the highest of as many draws as its weight, so that a server that goes or comes moves its
// own keys and no others (rendezvous; Thaler and Ravishankar 1998).
std::uint64_t score(std::uint64_t key, std::uint64_t server, unsigned weight) noexcept {
  std::uint64_t best = 0;
  for (unsigned draw = 0; draw < weight; ++draw) best = std::max(best, mixed(key ^ mixed(server << 8 | draw)));
  return best;
}

}  // namespace

UpstreamMember* UpstreamGroup::choose(const UpstreamChoice& choice, std::uint32_t tried) noexcept {
  UpstreamMember* best = nullptr;
  std::uint64_t best_score = 0;
  int credits = 0;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    UpstreamMember& each = members_[i];
    if ((tried >> i & 1) != 0 || !each.out_until.passed()) continue;
    switch (options_.balance) {
      case Balance::round_robin:
        // Smooth: whoever has waited for longest, by weight, and pays for all.
        each.credit += static_cast<int>(each.weight);
        credits += static_cast<int>(each.weight);
        if (best == nullptr || each.credit > best->credit) best = &each;
        break;
      case Balance::least_connections:
        if (best == nullptr || std::uint64_t{each.in_use} * best->weight < std::uint64_t{best->in_use} * each.weight) {
          best = &each;
        }
        break;
      case Balance::hash:
        if (const std::uint64_t own = score(choice.key, i, each.weight); best == nullptr || own > best_score) {
          best = &each;
          best_score = own;
        }
        break;
    }
  }
  if (best != nullptr) best->credit -= credits;
  return best;
}

// end counts a lease that is over; `well`: the server has answered as it should.
void UpstreamGroup::end(UpstreamMember& member, bool well) noexcept {
  const Locked locked(lock_);
  --member.in_use;
  if (well) member.failures = 0;
}

void UpstreamGroup::note_failure(UpstreamMember& member) noexcept {
  const Locked locked(lock_);
  // Who is the only one is asked: nobody else would answer instead.
  if (++member.failures < options_.failures || members_.size() == 1) return;
  const std::uint32_t times = std::min(member.failures - options_.failures, 16u);
  const auto alone = std::min(std::chrono::seconds(1u << times), options_.longest);
  member.out_until = Deadline::after(alone);
}

UpstreamState UpstreamGroup::state() const noexcept {
  const Locked locked(lock_);
  UpstreamState state{.servers = members_.size()};
  for (const UpstreamMember& each : members_) {
    state.answering += each.out_until.passed();
    state.in_use += each.in_use;
    state.resting += each.resting_count;
  }
  return state;
}

}  // namespace coir::http
