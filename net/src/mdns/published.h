#pragma once

#include <coir/net/mdns.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "mdns/interfaces.h"
#include "names/record_writer.h"

// The records that a responder publishes, and sets of them.
namespace coir::mdns {

// Set is a set of kinds of records, one bit each.
using Set = std::uint32_t;

inline constexpr unsigned kAddress4 = 0, kAddress6 = 1, kReverse = 2, kHostNone = 3, kReverseNone = 4, kHostKinds = 5;
// The records of each service, behind those of the host: the pointer to it from its type, its place, its text, its
// type's listing, and that it has nothing else.
inline constexpr unsigned kPointer = 0, kPlace = 1, kText = 2, kListing = 3, kServiceNone = 4, kServiceKinds = 5;
inline constexpr unsigned kKinds = kHostKinds + kServiceKinds * kMostServices;
static_assert(kKinds <= 32);

constexpr Set bit(unsigned kind) noexcept {
  return Set{1} << kind;
}
constexpr unsigned kind_of(std::size_t service, unsigned kind) noexcept {
  return kHostKinds + kServiceKinds * static_cast<unsigned>(service) + kind;
}

// Wanted is a set of records; of the reverse pointers those of some addresses alone.
struct Wanted {
  Set records = 0;
  std::uint8_t reverse = 0;  // one bit for each address of the interface

  bool empty() const noexcept { return records == 0; }
  Wanted& operator|=(const Wanted& other) noexcept {
    records |= other.records;
    reverse |= other.reverse;
    return *this;
  }
};

// Published is the host's name and its services, copied from the program's. The same number stands behind all of its
// names: NAME, NAME-2, NAME-3 ...
class Published {
 public:
  // set takes what the program asks for. An error is a phrase that names the part at fault.
  const char* set(const Options& options) noexcept;

  std::size_t services() const noexcept { return service_count_; }
  std::uint16_t number() const noexcept { return number_; }
  void rename() noexcept { ++number_; }
  // label writes the host's name as it is now, without ".local".
  std::string_view label(std::span<char> into) const noexcept;

  names::Name host() const noexcept;
  names::Name type(std::size_t service) const noexcept;
  names::Name instance(std::size_t service) const noexcept;
  static names::Name listing() noexcept;
  static names::Name reverse(const LinkAddress& address) noexcept;

  std::uint16_t port(std::size_t service) const noexcept { return entries_[service].port; }
  // text is the data of a TXT record.
  std::span<const unsigned char> text(std::size_t service) const noexcept {
    return {entries_[service].text, entries_[service].text_size};
  }

  static constexpr std::uint32_t ttl(unsigned kind) noexcept {
    if (kind < kHostKinds) return kHostTtl;
    const unsigned of = (kind - kHostKinds) % kServiceKinds;
    return of == kPlace || of == kServiceNone ? kHostTtl : kOtherTtl;
  }
  // is_shared tells that other hosts may have records of that name and type.
  static constexpr bool is_shared(unsigned kind) noexcept {
    if (kind < kHostKinds) return false;
    const unsigned of = (kind - kHostKinds) % kServiceKinds;
    return of == kPointer || of == kListing;
  }

 private:
  // Seconds (RFC 6762, 10): what changes with addresses, and the rest.
  static constexpr std::uint32_t kHostTtl = 120, kOtherTtl = 4500;
  static constexpr std::size_t kMostText = 256, kMostLabel = 63, kMostType = 32;

  struct Entry {
    char type[kMostType];
    char instance[kMostLabel];  // empty: the host's name
    std::uint8_t type_size, instance_size;
    std::uint16_t port, text_size;
    unsigned char text[kMostText];
  };

  std::string_view numbered(std::string_view label, std::span<char> into) const noexcept;

  Entry entries_[kMostServices];
  char label_[kMostLabel];
  std::uint8_t label_size_ = 0, service_count_ = 0;
  std::uint16_t number_ = 1;
};

}  // namespace coir::mdns
