#pragma once

#include <coir/http/wire/request.h>

#include <cstdint>
#include <string_view>

namespace coir::http {

// read_target sets form, path, query, https and, from an absolute-form target, authority of `request`, whose method and
// target are set. False: the target is malformed or of a form its method does not have.
bool read_target(Request& request) noexcept;

// is_authority tells whether `text` is a host with an optional port, without user information: a name, an IPv4 address
// or an IPv6 address in brackets. The host has 1 to 255 bytes; the port may be empty, and is at most 65535.
bool is_authority(std::string_view text) noexcept;

}  // namespace coir::http
