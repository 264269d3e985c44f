#include <string.h>

#include <algorithm>

#include "mdns/responder.h"

namespace coir::mdns {
namespace {

constexpr std::int64_t kLostWait = 1000;  // ms, after a tie that was lost (RFC 6762, 8.2)
constexpr std::size_t kMostItems = 12;

// Item is a record of a host's name in a probe, in the order of RFC 6762, 8.2: by type, then by data.
struct Item {
  std::uint16_t type;
  std::uint8_t size;
  unsigned char data[16];

  bool operator<(const Item& other) const noexcept {
    if (type != other.type) return type < other.type;
    const int order = memcmp(data, other.data, std::min(size, other.size));
    return order != 0 ? order < 0 : size < other.size;
  }
};

struct Items {
  std::size_t count = 0;
  Item list[kMostItems];

  void add(std::uint16_t type, std::span<const unsigned char> data) noexcept {
    if (count == kMostItems) return;
    Item& item = list[count++];
    item = {type, static_cast<std::uint8_t>(std::min<std::size_t>(data.size(), 16)), {}};
    if (item.size != 0) memcpy(item.data, data.data(), item.size);
  }
  std::span<const Item> sorted() noexcept {
    // A few items: by insertion.
    for (std::size_t i = 1; i < count; ++i) {
      for (std::size_t j = i; j > 0 && list[j] < list[j - 1]; --j) std::swap(list[j], list[j - 1]);
    }
    return {list, count};
  }
};

int compare_bytes(std::span<const unsigned char> one, std::span<const unsigned char> other) noexcept {
  const int order = memcmp(one.data(), other.data(), std::min(one.size(), other.size()));
  if (order != 0) return order;
  return one.size() < other.size() ? -1 : one.size() > other.size() ? 1 : 0;
}

void place_of(const Published& published, std::size_t service, unsigned char (&head)[6]) noexcept {
  memset(head, 0, sizeof head);
  head[4] = static_cast<unsigned char>(published.port(service) >> 8);
  head[5] = static_cast<unsigned char>(published.port(service));
}

// compare_host tells the order of another's addresses of our name beside ours: above 0, theirs come later and win.
[[gnu::noinline]] int compare_host(names::MessageReader message, unsigned records, const Published& published,
                                   const Interface& at) noexcept {
  Items ours, theirs;
  const names::Name host = published.host();
  for (unsigned i = 0; i < records; ++i) {
    names::Record record;
    if (!message.read(record)) break;
    if (message.name_is(record.name_at, host)) theirs.add(record.type, message.data(record));
  }
  for (const LinkAddress& each : at.all()) {
    ours.add(each.size == 4 ? names::kTypeA : names::kTypeAaaa, {each.bytes, each.size});
  }
  if (theirs.count == 0) return 0;
  const auto a = theirs.sorted(), b = ours.sorted();
  if (std::lexicographical_compare(b.begin(), b.end(), a.begin(), a.end())) return 1;
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end()) ? -1 : 0;
}

// compare_service does the same for a service's text and place, which come in this order.
// Not inlined, like compare_host: each holds a name, and their caller would hold both.
[[gnu::noinline]] int compare_service(names::MessageReader message, unsigned records, const Published& published,
                                      std::size_t service) noexcept {
  names::Record text, place;
  bool texts = false, places = false;
  {
    const names::Name instance = published.instance(service);
    for (unsigned i = 0; i < records; ++i) {
      names::Record record;
      if (!message.read(record)) break;
      if (!message.name_is(record.name_at, instance)) continue;
      if (record.type == names::kTypeTxt) text = record, texts = true;
      if (record.type == names::kTypeSrv) place = record, places = true;
    }
  }
  if (!texts && !places) return 0;
  if (!texts) return 1;
  if (const int order = compare_bytes(message.data(text), published.text(service)); order != 0) return order;
  if (!places || place.data_size < 7) return -1;
  unsigned char head[6];
  place_of(published, service, head);
  if (const int order = compare_bytes(message.data(place).first(6), head); order != 0) return order;
  names::Name target;
  if (!message.copy_name(place.data_at + 6, target)) return -1;
  return compare_bytes(target.wire(), published.host().wire());
}

// A hash that tells messages apart (FNV-1a).
std::uint64_t hash_of(std::span<const unsigned char> message) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const unsigned char byte : message) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

}  // namespace

// A message of ours that comes back, by another interface on the same link, a bridge or the loop, says nothing new: taken
// for another machine's it would make this machine rename itself for ever.
bool Responder::is_own(std::span<const unsigned char> message) const noexcept {
  return std::ranges::find(own_, hash_of(message)) != std::end(own_);
}

void Responder::remember(std::span<const unsigned char> message) noexcept {
  own_[own_next_] = hash_of(message);
  own_next_ = (own_next_ + 1) % kRemembered;
}

Responder::Match Responder::compare_address(const names::MessageReader& message, const names::Record& record,
                                            const Link& link) const noexcept {
  if (!message.name_is(record.name_at, published_.host())) return {};
  const auto data = message.data(record);
  const unsigned kind = record.type == names::kTypeA ? kAddress4 : kAddress6;
  for (std::size_t i = 0; i < link.at.count; ++i) {
    if (link.at.addresses[i].is(data)) return {Claim::same, kind, static_cast<std::uint8_t>(1u << i)};
  }
  return {interfaces_.owns(data) ? Claim::same : Claim::other, kind, 0};
}

Responder::Match Responder::compare_pointer(const names::MessageReader& message, const names::Record& record,
                                            const Link& link) const noexcept {
  for (std::size_t i = 0; i < published_.services(); ++i) {
    if (message.name_is(record.name_at, published_.type(i)) &&
        message.name_is(record.data_at, published_.instance(i))) {
      return {Claim::same, kind_of(i, kPointer), 0};
    }
    if (message.name_is(record.data_at, published_.type(i)) && message.name_is(record.name_at, Published::listing())) {
      return {Claim::same, kind_of(i, kListing), 0};
    }
  }
  for (std::size_t i = 0; i < link.at.count; ++i) {
    if (!message.name_is(record.name_at, Published::reverse(link.at.addresses[i]))) continue;
    const bool same = message.name_is(record.data_at, published_.host());
    return {same ? Claim::same : Claim::other, kReverse, static_cast<std::uint8_t>(1u << i)};
  }
  return {};
}

Responder::Match Responder::compare(const names::MessageReader& message, const names::Record& record,
                                    const Link& link) const noexcept {
  if ((record.klass & ~names::kCacheFlush) != names::kClassIn) return {};
  if (record.type == names::kTypeA || record.type == names::kTypeAaaa) return compare_address(message, record, link);
  if (record.type == names::kTypePtr) return compare_pointer(message, record, link);
  if (record.type != names::kTypeTxt && record.type != names::kTypeSrv) return {};
  const auto data = message.data(record);
  for (std::size_t i = 0; i < published_.services(); ++i) {
    if (!message.name_is(record.name_at, published_.instance(i))) continue;
    if (record.type == names::kTypeTxt) {
      const bool same = std::ranges::equal(data, published_.text(i));
      return {same ? Claim::same : Claim::other, kind_of(i, kText), 0};
    }
    unsigned char head[6];
    place_of(published_, i, head);
    const bool same = data.size() > 6 && std::ranges::equal(data.first(6), head) &&
                      message.name_is(record.data_at + 6, published_.host());
    return {same ? Claim::same : Claim::other, kind_of(i, kPlace), 0};
  }
  return {};
}

void Responder::take_response(const Arrival& arrival, names::MessageReader& message, const names::MessageHeader& header,
                              Link& link, std::int64_t now) noexcept {
  if (arrival.peer.port() != kPort) return;
  for (unsigned i = 0; i < header.questions; ++i) {
    names::Question question;
    if (!message.read(question)) return;
  }
  Path& path = link.paths[arrival.peer.family() == Address::Family::ipv6];
  const unsigned records = 0u + header.answers + header.authorities + header.additionals;
  for (unsigned i = 0; i < records; ++i) {
    names::Record record;
    if (!message.read(record)) return;
    const Match found = compare(message, record, link);
    if (found.claim == Claim::other && record.ttl != 0) {
      if (found.kind != kReverse) return conflict(link, now);
      // Another responder of this machine, by another name: its pointer is as good.
      if (interfaces_.owns(bytes_of(arrival.peer))) link.reverse_lost |= found.addresses;
    } else if (found.claim == Claim::same && link.answers()) {
      const bool here = (found.kind != kAddress4 && found.kind != kAddress6) || found.addresses != 0;
      if (here && record.ttl < Published::ttl(found.kind) / 2) {
        // Somebody lets it die that is alive (RFC 6762, 6.6).
        schedule(path, {bit(found.kind), found.kind == kReverse ? found.addresses : std::uint8_t{0}}, now);
      } else if (Published::is_shared(found.kind) && arrival.group && record.ttl >= Published::ttl(found.kind)) {
        path.pending.records &= ~bit(found.kind);  // said already (7.4)
      }
    }
  }
}

void Responder::take_probe(const Arrival& arrival, names::MessageReader& message, const names::MessageHeader& header,
                           Link& link, std::int64_t now) noexcept {
  if (interfaces_.owns(bytes_of(arrival.peer))) {
    names::MessageReader again = message;
    for (unsigned i = 0; i < header.authorities; ++i) {
      names::Record record;
      if (!again.read(record)) return;
      const Match found = compare(again, record, link);
      if (found.claim == Claim::other && found.kind == kReverse) link.reverse_lost |= found.addresses;
    }
  }
  if (link.phase != Phase::probing) return;
  int order = compare_host(message, header.authorities, published_, link.at);
  for (std::size_t i = 0; order == 0 && i < published_.services(); ++i) {
    order = compare_service(message, header.authorities, published_, i);
  }
  if (order <= 0) return;
  link.step = 0;
  link.due = now + kLostWait;
}

}  // namespace coir::mdns
