#include "mdns/interfaces.h"

#include <netinet/in.h>
#include <string.h>

#include <algorithm>

namespace coir::mdns {

bool LinkAddress::is(std::span<const unsigned char> address) const noexcept {
  return address.size() == size && memcmp(address.data(), bytes, size) == 0;
}

bool LinkAddress::covers(std::span<const unsigned char> address) const noexcept {
  if (address.size() != size) return false;
  const std::size_t whole = prefix / 8u;
  if (memcmp(address.data(), bytes, whole) != 0) return false;
  return prefix % 8 == 0 || (address[whole] ^ bytes[whole]) >> (8 - prefix % 8) == 0;
}

bool Interface::has(std::size_t size) const noexcept {
  return std::ranges::any_of(all(), [&](const LinkAddress& each) { return each.size == size; });
}

bool Interface::owns(std::span<const unsigned char> address) const noexcept {
  return std::ranges::any_of(all(), [&](const LinkAddress& each) { return each.is(address); });
}

bool Interface::is_near(std::span<const unsigned char> address) const noexcept {
  if (address.size() == 16 && address[0] == 0xfe && (address[1] & 0xc0) == 0x80) return true;
  if (address.size() == 4 && address[0] == 169 && address[1] == 254) return true;
  return std::ranges::any_of(all(), [&](const LinkAddress& each) { return each.covers(address); });
}

bool Interface::operator==(const Interface& other) const noexcept {
  return index == other.index && hardware == other.hardware && std::ranges::equal(all(), other.all());
}

const Interface* Interfaces::find(std::uint32_t index) const noexcept {
  for (const Interface& each : all()) {
    if (each.index == index) return &each;
  }
  return nullptr;
}

bool Interfaces::owns(std::span<const unsigned char> address) const noexcept {
  return std::ranges::any_of(all(), [&](const Interface& each) { return each.owns(address); });
}

std::span<const unsigned char> bytes_of(const Address& address) noexcept {
  const auto at = [](const void* bytes) { return static_cast<const unsigned char*>(bytes); };
  if (address.family() == Address::Family::ipv6) {
    return {at(&reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_addr), 16};
  }
  if (address.family() == Address::Family::ipv4) {
    return {at(&reinterpret_cast<const sockaddr_in*>(address.get())->sin_addr), 4};
  }
  return {};
}

}  // namespace coir::mdns
