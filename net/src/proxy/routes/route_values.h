#pragma once

#include <coir/deadline.h>
#include <coir/http/wire/request.h>
#include <coir/net/address.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace coir::http {

// parse_number reads a whole number from `least` to `most`.
std::optional<std::uint64_t> parse_number(std::string_view text, std::uint64_t least, std::uint64_t most) noexcept;

// is_trust_list tells whether is_trusted can read a list, with up to kMostTrusted entries.
inline constexpr std::size_t kMostTrusted = 8;
bool is_trust_list(std::string_view list) noexcept;

// address_of reads an address as X-Forwarded-For has it, with a port or without; it has port 0 then.
std::optional<Address> address_of(std::string_view text) noexcept;

// client_behind is who asks: the peer, or where `list` trusts the peer, whom X-Forwarded-For names, from its end on, up
// to the first that the list does not trust.
Address client_behind(const Address& peer, std::string_view list, std::span<const Header> fields) noexcept;

}  // namespace coir::http
