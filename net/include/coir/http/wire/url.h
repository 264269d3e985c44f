#pragma once

// Addresses of http and https.
//
//   auto url = parse_url("https://board.example:8443/status?full");
//   if (!url) return complain(url.error());
//   show(url->host, url->port, url->path, url->query);

#include <coir/error.h>

#include <cstdint>
#include <expected>
#include <span>
#include <string_view>

namespace coir::http {

// Url is an absolute address of http or https in pieces (RFC 3986), checked: nothing in it needs to be looked at again
// before it is sent. It owns nothing; every view points into the text given to parse_url. A default view (data() ==
// nullptr) means absent.
struct Url {
  bool secure = false;         // https
  std::uint16_t port = 80;     // the scheme's own where the text names none
  std::string_view host;       // a name or an address, without the brackets of IPv6; never empty
  std::string_view authority;  // host and port as the text has them, for the field Host
  std::string_view user_info;  // "user:password", still percent-encoded
  std::string_view path;       // begins with '/'; "/" where the text has none
  std::string_view query;      // after the first '?', without it
};

// parse_url reads "https://user@host:port/path?query#fragment". The fragment is dropped: no server sees it.
// Errors: invalid (malformed; a byte that is not visible ASCII, a `%` in the host), unsupported (another scheme). From
// any context; no allocation.
[[nodiscard]] std::expected<Url, Error> parse_url(std::string_view text) noexcept;

// parse_authority reads "user@host:port" as the address of http of that server. Errors: invalid.
[[nodiscard]] std::expected<Url, Error> parse_authority(std::string_view text) noexcept;

// resolve_url writes the address that `reference`, as a server's Location has it, means beside `base` into `out` (RFC
// 3986, 5.2): absolute, without dot segments, fragment and user information of the base. Spaces and bytes over 127 are
// percent-encoded, which servers often leave to the client. `out` overlaps neither. Errors: invalid (a control
// character), limit (`out` is too small).
[[nodiscard]] std::expected<std::string_view, Error> resolve_url(const Url& base, std::string_view reference,
                                                                 std::span<char> out) noexcept;

// same_origin tells whether two addresses have scheme, host and port in common. Hosts are compared without case.
bool same_origin(const Url& a, const Url& b) noexcept;

}  // namespace coir::http
