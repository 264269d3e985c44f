// Which server of a group is asked, and which is left alone for a while. Declared in proxy/upstreams/upstream.h.
#include "proxy/upstreams/upstream.h"

#include <algorithm>

namespace coir::http {
namespace {

constexpr std::uint8_t kMostDoublings = 16;  // of the pause of a server that is skipped
constexpr unsigned kWhole = 32;  // the share of a server, for each unit of its weight, that does not rise any more

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

bool is_skipped(const UpstreamMember& member) noexcept {
  return member.failing || !member.out_until.passed();
}

}  // namespace

// share_of is what a server takes of all exchanges: its weight, and while it rises the part of it that its time back has
// earned. Under lock_.
unsigned UpstreamGroup::share_of(UpstreamMember& member) const noexcept {
  if (member.rises_ns == 0) return member.weight * kWhole;
  const std::int64_t span = std::chrono::nanoseconds(options_.slow_start).count();
  const std::int64_t gone = monotonic_ns() - member.rises_ns;
  if (gone < span) return member.weight * static_cast<unsigned>(std::max<std::int64_t>(gone * kWhole / span, 1));
  member.rises_ns = 0;
  return member.weight * kWhole;
}

// While all servers are skipped, one that has hung up is asked all the same: most likely it has restarted, and nobody
// would answer instead. One that refuses or is silent is not: that would cost each exchange the time of a connection.
bool UpstreamGroup::is_well(std::size_t index, std::uint32_t tried) const noexcept {
  const UpstreamMember& member = members_[index];
  if ((tried >> index & 1) != 0 || member.failing) return false;
  return !is_skipped(member) || (member.hung_up && std::ranges::all_of(members_, is_skipped));
}

bool UpstreamGroup::may_be_asked(std::size_t index, std::uint32_t tried) const noexcept {
  const bool has_room = options_.most_in_use == 0 || members_[index].in_use < options_.most_in_use;
  return has_room && is_well(index, tried);
}

UpstreamMember* UpstreamGroup::choose(const UpstreamChoice& choice, std::uint32_t tried) noexcept {
  UpstreamMember* best = nullptr;
  std::uint64_t best_score = 0;
  unsigned best_share = 1;
  int credits = 0;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    UpstreamMember& each = members_[i];
    if (!may_be_asked(i, tried)) continue;
    const unsigned share = share_of(each);
    switch (options_.balance) {
      case Balance::round_robin:
        // Smooth: whoever has waited for longest, by weight, and pays for all.
        each.credit += static_cast<int>(share);
        credits += static_cast<int>(share);
        if (best == nullptr || each.credit > best->credit) best = &each;
        break;
      case Balance::least_connections:
        if (best == nullptr || std::uint64_t{each.in_use} * best_share < std::uint64_t{best->in_use} * share) {
          best = &each;
          best_share = share;
        }
        break;
      case Balance::hash: {
        // This share of the keys of a rising server stays with the servers that had them, unless there is no other server.
        const std::uint64_t lot = mixed(~choice.key ^ mixed(i)) % kWhole;
        const bool its_own = lot * each.weight < share;
        const std::uint64_t own = score(choice.key, i, each.weight) >> 1 | std::uint64_t{its_own} << 63;
        if (best == nullptr || own > best_score) {
          best = &each;
          best_score = own;
        }
        break;
      }
    }
  }
  if (best != nullptr) best->credit -= credits;
  return best;
}

void UpstreamGroup::count(UpstreamMember& member, std::uint64_t UpstreamServerState::* counter) noexcept {
  const Locked locked(lock_);
  ++(member.tally.*counter);
}

void UpstreamGroup::note_success(UpstreamMember& member, std::uint8_t era) noexcept {
  {
    const Locked locked(lock_);
    // A stream that began before it went down says nothing of today.
    if (era != member.era) return;
    member.failures = 0;
    member.skips = 0;
    if (!member.down || member.failing) return;
    come_back(member);
  }
  serve_line();
  tell(member);
}

void UpstreamGroup::note_failure(UpstreamMember& member, std::uint8_t era, UpstreamReason reason,
                                 bool at_once) noexcept {
  const bool by_error = reason.kind == UpstreamReason::Kind::error;
  const bool silent = by_error && reason.error == ErrorCode::timed_out;
  {
    const Locked locked(lock_);
    std::uint64_t UpstreamServerState::* const counter = silent     ? &UpstreamServerState::timed_out
                                                         : by_error ? &UpstreamServerState::unreachable
                                                         : reason.kind == UpstreamReason::Kind::malformed
                                                             ? &UpstreamServerState::malformed
                                                             : &UpstreamServerState::cut;
    ++(member.tally.*counter);
    // As a success of before it went down.
    if (era != member.era) return;
    const bool is_down = ++member.failures >= options_.failures;
    if (!is_down && !at_once) return;
    member.hung_up = !by_error;
    // The only server is asked all the same: nobody else would answer instead. If several exchanges fail in one moment,
    // the first skips the server, and the others change nothing.
    if (members_.size() > 1 && member.out_until.passed()) {
      member.out_until = Deadline::after(std::min(std::chrono::seconds(1u << member.skips), options_.longest));
      if (member.skips < kMostDoublings) ++member.skips;
    }
    if (!is_down) return;
    go_down(member, reason);
    member.unreachable = by_error && !silent;
  }
  if (by_error && !silent) due_.set();
  tell(member);
}

void UpstreamGroup::go_down(UpstreamMember& member, UpstreamReason reason) noexcept {
  if (member.down) return;
  member.down = true;
  member.reason = reason;
  ++member.era;
  ++member.tally.downs;
}

void UpstreamGroup::come_back(UpstreamMember& member) noexcept {
  member.failures = member.failed_checks = 0;
  member.skips = 0;
  member.failing = member.unreachable = false;
  member.out_until = Deadline::now();
  if (!std::exchange(member.down, false)) return;
  if (options_.slow_start.count() > 0) member.rises_ns = monotonic_ns();
}

UpstreamState UpstreamGroup::state() const noexcept {
  const Locked locked(lock_);
  UpstreamState state{.servers = members_.size(), .waiting = line_.size(), .unavailable = unavailable_};
  for (const UpstreamMember& each : members_) {
    state.answering += !is_skipped(each);
    state.in_use += each.in_use;
    state.resting += each.resting();
  }
  return state;
}

UpstreamServerState UpstreamGroup::state_of(const UpstreamMember& member) const noexcept {
  const Locked locked(lock_);
  UpstreamServerState state = member.tally;
  state.up = !member.down;
  state.in_use = member.in_use;
  state.resting = member.resting();
  return state;
}

}  // namespace coir::http
