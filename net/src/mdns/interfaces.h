#pragma once

#include <coir/net/address.h>

#include <cstddef>
#include <cstdint>
#include <span>

// The machine's interfaces and their addresses, as the responder sees them.
namespace coir::mdns {

inline constexpr std::size_t kMostInterfaces = 8;
inline constexpr std::size_t kMostAddresses = 8;  // of one interface

// LinkAddress is an address of an interface with its prefix: what begins alike is on the same link.
struct LinkAddress {
  unsigned char bytes[16] = {};
  std::uint8_t size = 0;    // 4 or 16
  std::uint8_t prefix = 0;  // bits

  bool is(std::span<const unsigned char> address) const noexcept;
  bool covers(std::span<const unsigned char> address) const noexcept;
  bool operator==(const LinkAddress&) const noexcept = default;
};

struct Interface {
  std::uint32_t index = 0;
  // A sum of the link's own address (MAC): where that changes, the neighbours look for it at the old one.
  std::uint32_t hardware = 0;
  std::uint8_t count = 0;
  LinkAddress addresses[kMostAddresses];

  std::span<const LinkAddress> all() const noexcept { return {addresses, count}; }
  // has tells whether there is an address of that size.
  bool has(std::size_t size) const noexcept;
  // owns tells whether `address` is one of its own; is_near whether it lies on its link (RFC 6762, 11).
  bool owns(std::span<const unsigned char> address) const noexcept;
  bool is_near(std::span<const unsigned char> address) const noexcept;
  bool operator==(const Interface& other) const noexcept;
};

// Interfaces is those that are up, take multicast and have an address, loopback left out. Beyond kMostInterfaces the rest is
// left out.
struct Interfaces {
  std::size_t count = 0;
  Interface list[kMostInterfaces];

  std::span<const Interface> all() const noexcept { return {list, count}; }
  const Interface* find(std::uint32_t index) const noexcept;
  bool owns(std::span<const unsigned char> address) const noexcept;
};

// bytes_of is the 4 or 16 bytes of an IP address.
std::span<const unsigned char> bytes_of(const Address& address) noexcept;

}  // namespace coir::mdns
