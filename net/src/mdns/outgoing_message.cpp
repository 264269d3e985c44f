#include <algorithm>

#include "mdns/responder.h"

namespace coir::mdns {
namespace {

using names::RecordWriter;

constexpr std::uint32_t kLegacyTtl = 10;  // seconds at most (RFC 6762, 6.7)
constexpr unsigned kMostEchoed = 8;
constexpr names::MessageHeader kAnswer = {.flags =
                                              names::MessageHeader::kResponse | names::MessageHeader::kAuthoritative};

// put_none writes the data of NSEC: that a name has these types and no other (RFC 6762, 6.1).
void put_none(RecordWriter& out, const names::Name& name, std::initializer_list<std::uint16_t> types) noexcept {
  unsigned char block[2 + 5] = {};
  for (const std::uint16_t type : types) {
    block[2 + type / 8] = static_cast<unsigned char>(block[2 + type / 8] | 0x80 >> type % 8);
    block[1] = std::max(block[1], static_cast<unsigned char>(1 + type / 8));
  }
  out.name(name);
  out.bytes(std::span(block).first(2u + block[1]));
}

}  // namespace

void Responder::send(std::span<const unsigned char> message, const Link& link, bool ipv6, const Address* to) noexcept {
  if (!link.at.has(ipv6 ? 16 : 4)) return;
  if (to == nullptr) remember(message);
  sender_.send(message, link.at.index, ipv6, to);
}

Wanted Responder::all(const Link& link) const noexcept {
  Wanted wanted;
  if (link.at.has(4)) wanted.records |= bit(kAddress4);
  if (link.at.has(16)) wanted.records |= bit(kAddress6);
  wanted.reverse = static_cast<std::uint8_t>(~link.reverse_lost & ((1u << link.at.count) - 1));
  if (wanted.reverse != 0) wanted.records |= bit(kReverse);
  for (std::size_t i = 0; i < published_.services(); ++i) {
    for (const unsigned kind : {kPointer, kPlace, kText, kListing}) wanted.records |= bit(kind_of(i, kind));
  }
  return wanted;
}

// additional is what an asker for `answers` will ask for next.
Wanted Responder::additional(const Link& link, const Wanted& answers) const noexcept {
  Set more = 0;
  for (std::size_t i = 0; i < published_.services(); ++i) {
    if ((answers.records & bit(kind_of(i, kPointer))) != 0) more |= bit(kind_of(i, kPlace)) | bit(kind_of(i, kText));
  }
  bool addresses = (answers.records & (bit(kAddress4) | bit(kAddress6))) != 0;
  for (std::size_t i = 0; i < published_.services(); ++i) {
    addresses |= ((answers.records | more) & bit(kind_of(i, kPlace))) != 0;
  }
  if (addresses) {
    more |= link.at.has(4) ? bit(kAddress4) : bit(kHostNone);
    more |= link.at.has(16) ? bit(kAddress6) : bit(kHostNone);
  }
  return {more & ~answers.records, 0};
}

// put writes one record of a kind: of addresses that of `part`. If there is none, it does nothing. False: no room.
bool Responder::put(RecordWriter& out, RecordWriter::Section section, const Link& link, unsigned kind, std::size_t part,
                    As as) const noexcept {
  if (kind >= kHostKinds) return part != 0 || put_service(out, section, kind, as);
  const std::uint32_t ttl = as == As::goodbye ? 0 : as == As::legacy ? kLegacyTtl : Published::ttl(kind);
  const std::uint16_t klass = names::kClassIn | (as == As::answer ? names::kCacheFlush : 0);
  if (kind == kHostNone) {
    if (part != 0) return true;
    const names::Name host = published_.host();
    out.begin(section, host, names::kTypeNsec, klass, ttl);
    if (!link.at.has(16))
      put_none(out, host, {names::kTypeA});
    else if (!link.at.has(4))
      put_none(out, host, {names::kTypeAaaa});
    else
      put_none(out, host, {names::kTypeA, names::kTypeAaaa});
    return out.end();
  }
  const LinkAddress& address = link.at.addresses[part];
  if (kind == kReverse || kind == kReverseNone) {
    const names::Name reverse = Published::reverse(address);
    out.begin(section, reverse, kind == kReverse ? names::kTypePtr : names::kTypeNsec, klass, ttl);
    if (kind == kReverse)
      out.name(published_.host());
    else
      put_none(out, reverse, {names::kTypePtr});
    return out.end();
  }
  if (address.size != (kind == kAddress4 ? 4 : 16)) return true;
  out.begin(section, published_.host(), kind == kAddress4 ? names::kTypeA : names::kTypeAaaa, klass, ttl);
  out.bytes({address.bytes, address.size});
  return out.end();
}

bool Responder::put_service(RecordWriter& out, RecordWriter::Section section, unsigned kind, As as) const noexcept {
  const std::size_t service = (kind - kHostKinds) / kServiceKinds;
  const unsigned of = (kind - kHostKinds) % kServiceKinds;
  const std::uint32_t ttl = as == As::goodbye ? 0 : as == As::legacy ? kLegacyTtl : Published::ttl(kind);
  const bool flush = as == As::answer && !Published::is_shared(kind);
  const std::uint16_t klass = names::kClassIn | (flush ? names::kCacheFlush : 0);
  if (of == kListing || of == kPointer) {
    out.begin(section, of == kListing ? Published::listing() : published_.type(service), names::kTypePtr, klass, ttl);
    out.name(of == kListing ? published_.type(service) : published_.instance(service));
    return out.end();
  }
  const names::Name instance = published_.instance(service);
  const std::uint16_t type = of == kPlace ? names::kTypeSrv : of == kText ? names::kTypeTxt : names::kTypeNsec;
  out.begin(section, instance, type, klass, ttl);
  if (of == kPlace) {
    out.u16(0);
    out.u16(0);
    out.u16(published_.port(service));
    out.name(published_.host(), as != As::legacy);
  } else if (of == kText) {
    out.bytes(published_.text(service));
  } else {
    put_none(out, instance, {names::kTypeTxt, names::kTypeSrv});
  }
  return out.end();
}

bool Responder::put_all(RecordWriter& out, RecordWriter::Section section, const Link& link, const Wanted& wanted,
                        As as) const noexcept {
  bool all = true;
  for (unsigned kind = 0; kind < kKinds; ++kind) {
    if ((wanted.records & bit(kind)) == 0) continue;
    for (std::size_t part = 0; part < std::max<std::size_t>(link.at.count, 1); ++part) {
      const bool reverse = kind == kReverse || kind == kReverseNone;
      if (reverse && (wanted.reverse >> part & 1) == 0) continue;
      all &= put(out, section, link, kind, part, as);
    }
  }
  return all;
}

void Responder::send_probe(const Link& link, Room room) noexcept {
  RecordWriter out(room, {});
  constexpr std::uint16_t kClass = names::kClassIn | names::kUnicastWanted;
  out.ask(published_.host(), names::kTypeAny, kClass);
  for (std::size_t i = 0; i < published_.services(); ++i) out.ask(published_.instance(i), names::kTypeAny, kClass);
  for (std::size_t i = 0; i < link.at.count; ++i) {
    if (is_ours(link, i)) out.ask(Published::reverse(link.at.addresses[i]), names::kTypeAny, kClass);
  }
  Wanted claimed = all(link);
  for (unsigned kind = 0; kind < kKinds; ++kind) {
    if (Published::is_shared(kind)) claimed.records &= ~bit(kind);
  }
  put_all(out, RecordWriter::authority, link, claimed, As::probe);
  for (const bool ipv6 : {false, true}) send(out.message(), link, ipv6, nullptr);
}

// send_records sends answers in as many messages as they take, and of the rest what fits the last.
void Responder::send_records(const Link& link, bool ipv6, const Wanted& answers, const Wanted& more, As as,
                             Room room) noexcept {
  room = room.first(std::min(room.size(), kMostBytes));
  RecordWriter out(room, kAnswer);
  for (unsigned kind = 0; kind < kKinds; ++kind) {
    if ((answers.records & bit(kind)) == 0) continue;
    const Wanted one = {bit(kind), answers.reverse};
    RecordWriter before = out;
    if (put_all(out, RecordWriter::answer, link, one, as)) continue;
    send(before.message(), link, ipv6, nullptr);
    out = RecordWriter(room, kAnswer);
    put_all(out, RecordWriter::answer, link, one, as);
  }
  put_all(out, RecordWriter::additional, link, more, as);
  if (out.count(RecordWriter::answer) != 0) send(out.message(), link, ipv6, nullptr);
}

void Responder::send_unicast(const Arrival& arrival, const Link& link, const Wanted& answers, bool legacy,
                             Room room) noexcept {
  names::MessageReader query(arrival.bytes);
  names::MessageHeader asked, header = kAnswer;
  static_cast<void>(query.read(asked));
  if (legacy) header.id = asked.id;
  RecordWriter out(room.first(std::min(room.size(), kMostBytes)), header);
  names::Question question;
  for (unsigned i = 0; legacy && i < std::min<unsigned>(asked.questions, kMostEchoed) && query.read(question); ++i) {
    names::Name name;
    if (query.copy_name(question.name_at, name)) out.ask(name, question.type, question.klass);
  }
  const As as = legacy ? As::legacy : As::answer;
  put_all(out, RecordWriter::answer, link, answers, as);
  put_all(out, RecordWriter::additional, link, additional(link, answers), as);
  send(out.message(), link, arrival.peer.family() == Address::Family::ipv6, &arrival.peer);
}

}  // namespace coir::mdns
