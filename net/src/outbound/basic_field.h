#pragma once

#include <coir/format.h>

#include <string_view>

namespace coir::http {

// add_basic_field writes the credentials of an address, "user:password" percent-encoded, as a line of the Basic scheme
// (RFC 7617); nothing for an absent view. False: they are malformed or too long. tunnel.cpp has it.
bool add_basic_field(Formatter& head, std::string_view name, std::string_view user_info) noexcept;

}  // namespace coir::http
