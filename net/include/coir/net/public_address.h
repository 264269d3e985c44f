#pragma once

#include <coir/net/address.h>

namespace coir {

// is_public tells whether an address is one of the public Internet's: no loopback, private, link-local, multicast, documentation's or
// otherwise reserved range of IANA's registries for special purposes, and no Unix socket. An IPv6 address that
// carries an IPv4 one (mapped, NAT64, 6to4) is as public as that; Teredo's, which hide theirs, are not.
// From any context; no allocation.
bool is_public(const Address& address) noexcept;

}  // namespace coir
