#include <coir/net/address.h>
#include <netinet/in.h>
#include <string.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace coir {
namespace {

struct Range {
  std::uint32_t first;
  unsigned bits;
};

// IANA's IPv4 Special-Purpose Address Registry, multicast and what is reserved.
constexpr Range kReserved[] = {
    {0x00000000, 8},   // this network
    {0x0a000000, 8},   // private
    {0x64400000, 10},  // a provider's own
    {0x7f000000, 8},   // loopback
    {0xa9fe0000, 16},  // link-local
    {0xac100000, 12},  // private
    {0xc0000000, 24},  // protocol assignments
    {0xc0000200, 24},  // documentation
    {0xc0586300, 24},  // 6to4 relays
    {0xc0a80000, 16},  // private
    {0xc6120000, 15},  // measurements
    {0xc6336400, 24},  // documentation
    {0xcb007100, 24},  // documentation
    {0xe0000000, 3},   // multicast, reserved, broadcast
};

bool is_public_ipv4(std::uint32_t address) noexcept {
  return std::none_of(std::begin(kReserved), std::end(kReserved),
                      [&](const Range& range) { return ((address ^ range.first) >> (32 - range.bits)) == 0; });
}

std::uint32_t number_at(const unsigned char* bytes) noexcept {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
}

bool is_public_ipv6(const unsigned char* bytes) noexcept {
  constexpr unsigned char kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  constexpr unsigned char kNat64[12] = {0, 0x64, 0xff, 0x9b};
  if (memcmp(bytes, kMapped, sizeof kMapped) == 0 || memcmp(bytes, kNat64, sizeof kNat64) == 0)
    return is_public_ipv4(number_at(bytes + 12));
  const std::uint32_t start = number_at(bytes);
  if (start >> 16 == 0x2002) return is_public_ipv4(number_at(bytes + 2));  // 6to4
  if (start >> 29 != 1) return false;                                      // 2000::/3 is all that is given out
  if (start >> 9 == 0x20010000u >> 9) return false;                        // 2001::/23: Teredo, benchmarks, ORCHID
  return start != 0x20010db8 && start >> 12 != 0x3fff0;                    // documentation
}

}  // namespace

bool is_public(const Address& address) noexcept {
  if (address.family() == Address::Family::ipv4)
    return is_public_ipv4(ntohl(reinterpret_cast<const sockaddr_in*>(address.get())->sin_addr.s_addr));
  return address.family() == Address::Family::ipv6 &&
         is_public_ipv6(reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_addr.s6_addr);
}

}  // namespace coir
