#pragma once

#include <coir/http/wire/request.h>

#include <span>
#include <string_view>

namespace coir::http {

// is_allowed_origin tells whether a page may send `request`, by its field Origin (RFC 6454, 7). A browser lets any page
// open a WebSocket to any server, with the user's cookies; so the server has to ask. Allowed are requests
//
//   - without the field: no browser sent them;
//   - from the request's own origin: scheme (`secure` is https), host and port are those of the request itself. A request
//     without TLS may also come from the https origin of its host and port: a proxy in front may have ended the TLS;
//   - from an origin of `allowed`, each as a browser writes it ("https://example.org", "null"), or "*" for all.
//
// A field that occurs twice is allowed nowhere. Hosts are compared without case; the scheme's own port may be named.
bool is_allowed_origin(const Request& request, bool secure, std::span<const std::string_view> allowed) noexcept;

}  // namespace coir::http
