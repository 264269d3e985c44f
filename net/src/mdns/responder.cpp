#include "mdns/responder.h"

#include <algorithm>

namespace coir::mdns {
namespace {

// Milliseconds, as RFC 6762 has them: 8.1, 8.3, 6.
constexpr std::int64_t kProbeEvery = 250, kAnnounceEvery = 1000, kRecordEvery = 1000, kProbedEvery = 250;
constexpr unsigned kProbes = 3, kAnnouncements = 2;
// From so many conflicts in ten seconds on, each new name waits for five (8.1).
constexpr unsigned kManyConflicts = 15;
constexpr std::int64_t kConflictSpan = 10'000, kConflictWait = 5'000;

}  // namespace

std::uint32_t Responder::random(std::uint32_t from, std::uint32_t to) noexcept {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 17;
  random_ ^= random_ << 5;
  return from + random_ % (to - from + 1);
}

Responder::Link* Responder::find(std::uint32_t index) noexcept {
  for (Link& link : links_) {
    if (link.phase != Phase::off && link.at.index == index) return &link;
  }
  return nullptr;
}

void Responder::probe_from_start(Link& link, std::int64_t now, std::int64_t wait) noexcept {
  link.phase = Phase::probing;
  link.step = 0;
  link.due = now + wait;
  for (Path& path : link.paths) {
    path.pending = {};
    path.due = kNever;
  }
}

void Responder::set_interfaces(const Interfaces& now_there, std::int64_t now) noexcept {
  interfaces_ = now_there;
  for (Link& link : links_) {
    if (link.phase != Phase::off && now_there.find(link.at.index) == nullptr) link = Link();
  }
  for (const Interface& each : now_there.all()) {
    Link* link = find(each.index);
    if (link != nullptr && link->at == each) continue;
    if (link == nullptr) {
      link = std::ranges::find(links_, Phase::off, &Link::phase);
      if (link == std::end(links_)) return;
    }
    link->at = each;
    link->reverse_lost = 0;
    probe_from_start(*link, now, random(0, kProbeEvery));
  }
}

// conflict follows another machine's record of a name of ours. If the name was still probed for, the other machine has it;
// if it was ours already, it is probed for again, and the other one defends it or does not (RFC 6762, 9).
void Responder::conflict(Link& link, std::int64_t now) noexcept {
  if (link.answers()) return probe_from_start(link, now, 0);
  // Only what answers a probe counts: copies of what led to probing again still arrive.
  if (link.step == 0) return;
  published_.rename();
  if (conflicts_ < kManyConflicts && now - conflicts_since_ > kConflictSpan) {
    conflicts_since_ = now;
    conflicts_ = 0;
  }
  conflicts_ = static_cast<std::uint8_t>(std::min(conflicts_ + 1u, kManyConflicts));
  const std::int64_t wait = conflicts_ >= kManyConflicts ? kConflictWait : random(0, kProbeEvery);
  for (Link& each : links_) {
    if (each.phase != Phase::off) probe_from_start(each, now, wait);
  }
}

void Responder::announce_name() noexcept {
  if (told_ == published_.number()) return;
  told_ = published_.number();
  char room[64];
  if (sender_.named) sender_.named(published_.label(room));
}

// flush sends what is pending, but nothing that went to the group within the last second.
void Responder::flush(Link& link, bool ipv6, Room room, std::int64_t now) noexcept {
  Path& path = link.paths[ipv6];
  const std::int64_t apart = path.urgent ? kProbedEvery : kRecordEvery;
  Wanted ready = path.pending, later;
  std::int64_t due = kNever;
  for (unsigned kind = 0; kind < kKinds; ++kind) {
    if ((ready.records & bit(kind)) == 0 || path.sent[kind] == 0) continue;
    const std::uint32_t since = static_cast<std::uint32_t>(now) - path.sent[kind];
    if (since >= apart) continue;
    ready.records &= ~bit(kind);
    later.records |= bit(kind);
    due = std::min(due, now + apart - since);
  }
  if ((later.records & bit(kReverse)) != 0) later.reverse = ready.reverse;
  path.pending = later;
  path.due = due;
  if (due == kNever) path.urgent = false;
  if (ready.empty()) return;
  Wanted more = additional(link, ready);
  for (unsigned kind = 0; kind < kKinds; ++kind) {
    const bool recent = path.sent[kind] != 0 && static_cast<std::uint32_t>(now) - path.sent[kind] < kRecordEvery;
    if (recent) more.records &= ~bit(kind);
  }
  send_records(link, ipv6, ready, more, As::answer, room);
  for (unsigned kind = 0; kind < kKinds; ++kind) {
    if (((ready.records | more.records) & bit(kind)) != 0) path.sent[kind] = stamp(now);
  }
}

void Responder::tick(Room room, std::int64_t now) noexcept {
  for (Link& link : links_) {
    if (link.phase == Phase::off) continue;
    if (link.due <= now && link.phase == Phase::probing) {
      if (link.step < kProbes) {
        ++link.step;
        link.due = now + kProbeEvery;
        send_probe(link, room);
      } else {
        link.phase = Phase::announcing;
        link.step = 0;
        conflicts_ = 0;
        announce_name();
      }
    }
    if (link.due <= now && link.phase == Phase::announcing) {
      if (++link.step == kAnnouncements) {
        link.phase = Phase::running;
        link.due = kNever;
      } else {
        link.due = now + kAnnounceEvery;
      }
      for (Path& path : link.paths) schedule(path, all(link), now);
    }
    for (const bool ipv6 : {false, true}) {
      if (link.paths[ipv6].due <= now) flush(link, ipv6, room, now);
    }
  }
  for (Deferred& each : deferred_) {
    if (each.due > now) continue;
    each.due = kNever;
    Link* const link = find(each.interface);
    if (link == nullptr || !link->answers()) continue;
    const bool ipv6 = each.peer.family() == Address::Family::ipv6;
    schedule(link->paths[ipv6], each.wanted, now);
    flush(*link, ipv6, room, now);
  }
}

std::int64_t Responder::next() const noexcept {
  std::int64_t soonest = kNever;
  for (const Link& link : links_) {
    if (link.phase == Phase::off) continue;
    soonest = std::min({soonest, link.due, link.paths[0].due, link.paths[1].due});
  }
  for (const Deferred& each : deferred_) soonest = std::min(soonest, each.due);
  return soonest;
}

void Responder::stop(Room room) noexcept {
  for (Link& link : links_) {
    if (!link.answers()) continue;
    for (const bool ipv6 : {false, true}) send_records(link, ipv6, all(link), {}, As::goodbye, room);
    link = Link();
  }
}

}  // namespace coir::mdns
