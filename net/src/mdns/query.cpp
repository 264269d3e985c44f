#include <string.h>

#include <algorithm>

#include "mdns/responder.h"

namespace coir::mdns {
namespace {

// Milliseconds (RFC 6762, 6 and 7.2).
constexpr std::uint32_t kSharedFrom = 20, kSharedTo = 120, kTruncatedFrom = 400, kTruncatedTo = 500;
// Unicast answers, on all links together: one each 50 ms, and 40 of them at once.
constexpr std::int64_t kUnicastEvery = 50, kUnicastAhead = 39 * kUnicastEvery;

bool is_same(const Address& one, const Address& other) noexcept {
  return one.length() == other.length() && memcmp(one.get(), other.get(), one.length()) == 0;
}

constexpr bool asks(const names::Question& question, std::uint16_t type) noexcept {
  return question.type == type || question.type == names::kTypeAny;
}

}  // namespace

void Responder::receive(const Arrival& arrival, Room room, std::int64_t now) noexcept {
  Link* const link = find(arrival.interface);
  if (link == nullptr || is_own(arrival.bytes)) return;
  names::MessageReader message(arrival.bytes);
  names::MessageHeader header;
  using names::MessageHeader;
  if (!message.read(header) || (header.flags & (MessageHeader::kOpcode | MessageHeader::kCode)) != 0) return;
  // Packets to the group are from this link; all others must be, too (RFC 6762, 11).
  const bool near = link->at.is_near(bytes_of(arrival.peer));
  if (!arrival.group && !near) return;
  if ((header.flags & MessageHeader::kResponse) != 0) return take_response(arrival, message, header, *link, now);
  if (arrival.peer.port() != kPort && !near) return;
  answer_query(arrival, message, header, *link, room, now);
}

void Responder::answer_query(const Arrival& arrival, names::MessageReader& message, const names::MessageHeader& header,
                             Link& link, Room room, std::int64_t now) noexcept {
  const bool legacy = arrival.peer.port() != kPort;
  const bool ipv6 = arrival.peer.family() == Address::Family::ipv6;
  if (header.questions == 0) {
    if (!legacy) static_cast<void>(continue_deferred(arrival, header, message, link, now));
    return;
  }
  Wanted multicast, unicast;
  for (unsigned i = 0; i < header.questions; ++i) {
    names::Question question;
    if (!message.read(question)) return;
    const std::uint16_t klass = question.klass & ~names::kUnicastWanted;
    if (!link.answers() || (klass != names::kClassIn && klass != names::kClassAny)) continue;
    const bool alone = legacy || !arrival.group || (question.klass & names::kUnicastWanted) != 0;
    (alone ? unicast : multicast) |= match(message, question, link);
  }
  Known known;
  read_known(message, header, link, known);
  const bool probe = header.authorities != 0;
  if (probe) take_probe(arrival, message, header, link, now);
  strip(multicast, known, link);
  strip(unicast, known, link);
  if (legacy) {
    if (!unicast.empty() && may_send_unicast(now)) send_unicast(arrival, link, unicast, true, room);
    return;
  }
  Path& path = link.paths[ipv6];
  if (!link.at.is_near(bytes_of(arrival.peer))) {
    multicast |= unicast;
    unicast = {};
  }
  to_group(path, unicast, multicast, now);
  if (!unicast.empty() && may_send_unicast(now)) {
    send_unicast(arrival, link, unicast, false, room);
  } else {
    multicast |= unicast;
  }
  if (multicast.empty()) return;
  if ((header.flags & names::MessageHeader::kTruncated) != 0 && defer(arrival, multicast, now)) return;
  bool shared = false;
  for (unsigned kind = 0; kind < kKinds; ++kind) {
    shared |= (multicast.records & bit(kind)) != 0 && Published::is_shared(kind);
  }
  path.urgent |= probe;
  schedule(path, multicast, shared && !probe ? now + random(kSharedFrom, kSharedTo) : now);
  if (path.due <= now) flush(link, ipv6, room, now);
}

// may_send_unicast limits the rate of answers that a sender's address, which anybody can forge, directs. Answers to the
// group have a limit of their own.
bool Responder::may_send_unicast(std::int64_t now) noexcept {
  if (unicast_due_ > now + kUnicastAhead) return false;
  unicast_due_ = std::max(unicast_due_, now) + kUnicastEvery;
  return true;
}

// to_group has what did not go to the group for a quarter of its life go there, though a unicast answer was wanted
// (RFC 6762, 5.4).
void Responder::to_group(const Path& path, Wanted& unicast, Wanted& multicast, std::int64_t now) const noexcept {
  for (unsigned kind = 0; kind < kKinds; ++kind) {
    if ((unicast.records & bit(kind)) == 0) continue;
    const std::uint32_t since = static_cast<std::uint32_t>(now) - path.sent[kind];
    if (path.sent[kind] != 0 && since < Published::ttl(kind) * 1000 / 4) continue;
    unicast.records &= ~bit(kind);
    multicast.records |= bit(kind);
    if (kind == kReverse || kind == kReverseNone) multicast.reverse |= unicast.reverse;
  }
}

Wanted Responder::match(const names::MessageReader& message, const names::Question& question,
                        const Link& link) const noexcept {
  if (message.name_is(question.name_at, published_.host())) {
    Set held = 0;
    if (asks(question, names::kTypeA) && link.at.has(4)) held |= bit(kAddress4);
    if (asks(question, names::kTypeAaaa) && link.at.has(16)) held |= bit(kAddress6);
    return {held != 0 ? held : bit(kHostNone), 0};
  }
  Wanted wanted;
  const bool pointers = asks(question, names::kTypePtr);
  const bool listing = pointers && message.name_is(question.name_at, Published::listing());
  for (std::size_t i = 0; i < published_.services(); ++i) {
    if (listing) wanted.records |= bit(kind_of(i, kListing));
    if (pointers && message.name_is(question.name_at, published_.type(i))) wanted.records |= bit(kind_of(i, kPointer));
    if (!message.name_is(question.name_at, published_.instance(i))) continue;
    Set held = 0;
    if (asks(question, names::kTypeSrv)) held |= bit(kind_of(i, kPlace));
    if (asks(question, names::kTypeTxt)) held |= bit(kind_of(i, kText));
    wanted.records |= held != 0 ? held : bit(kind_of(i, kServiceNone));
  }
  return wanted.empty() ? match_reverse(message, question, link) : wanted;
}

Wanted Responder::match_reverse(const names::MessageReader& message, const names::Question& question,
                                const Link& link) const noexcept {
  for (std::size_t i = 0; i < link.at.count; ++i) {
    if (!is_ours(link, i) || !message.name_is(question.name_at, Published::reverse(link.at.addresses[i]))) continue;
    return {bit(asks(question, names::kTypePtr) ? kReverse : kReverseNone), static_cast<std::uint8_t>(1u << i)};
  }
  return {};
}

// read_known reads the answers that the asker has already, for at least half of their life (RFC 6762, 7.1).
void Responder::read_known(names::MessageReader& message, const names::MessageHeader& header, const Link& link,
                           Known& known) const noexcept {
  for (unsigned i = 0; i < header.answers; ++i) {
    names::Record record;
    if (!message.read(record)) return;
    const Match found = compare(message, record, link);
    if (found.claim != Claim::same || record.ttl < Published::ttl(found.kind) / 2) continue;
    if (found.kind == kReverse) {
      known.reverse |= found.addresses;
    } else if (found.kind == kAddress4 || found.kind == kAddress6) {
      known.addresses |= found.addresses;
    } else {
      known.records |= bit(found.kind);
    }
  }
}

// strip takes away what is known; addresses of a family go as a whole.
void Responder::strip(Wanted& wanted, const Known& known, const Link& link) noexcept {
  wanted.records &= ~known.records;
  wanted.reverse &= static_cast<std::uint8_t>(~known.reverse);
  if (wanted.reverse == 0) wanted.records &= ~(bit(kReverse) | bit(kReverseNone));
  for (const std::size_t size : {std::size_t{4}, std::size_t{16}}) {
    bool all = true;
    for (std::size_t i = 0; i < link.at.count; ++i) {
      all &= link.at.addresses[i].size != size || (known.addresses >> i & 1) != 0;
    }
    if (all) wanted.records &= ~bit(size == 4 ? kAddress4 : kAddress6);
  }
}

// defer waits for the rest of a query whose known answers do not fit one message. False: too many do that.
bool Responder::defer(const Arrival& arrival, const Wanted& wanted, std::int64_t now) noexcept {
  const auto free = std::ranges::find(deferred_, kNever, &Deferred::due);
  if (free == std::end(deferred_)) return false;
  *free = {arrival.peer, arrival.interface, wanted, {}, now + random(kTruncatedFrom, kTruncatedTo)};
  return true;
}

bool Responder::continue_deferred(const Arrival& arrival, const names::MessageHeader& header,
                                  names::MessageReader& message, const Link& link, std::int64_t now) noexcept {
  bool any = false;
  for (Deferred& each : deferred_) {
    if (each.due == kNever || each.interface != arrival.interface || !is_same(each.peer, arrival.peer)) continue;
    names::MessageReader answers = message;
    read_known(answers, header, link, each.known);
    strip(each.wanted, each.known, link);
    if ((header.flags & names::MessageHeader::kTruncated) != 0) each.due = now + random(kTruncatedFrom, kTruncatedTo);
    if (each.wanted.empty()) each.due = kNever;
    any = true;
  }
  return any;
}

void Responder::schedule(Path& path, const Wanted& wanted, std::int64_t due) noexcept {
  path.pending |= wanted;
  path.due = std::min(path.due, due);
}

}  // namespace coir::mdns
