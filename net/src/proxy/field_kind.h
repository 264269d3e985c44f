#pragma once

#include <coir/http/wire/request.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace coir::http {

// FieldKind is what a proxy does with a field of a head.
enum class FieldKind : std::uint8_t {
  passed,           // end to end
  hop,              // between two neighbours, or framing: made anew or left out
  connection,       // names further ones of the kind `hop`
  te,               // keeps `trailers` alone
  trailer,          // stands where chunked content follows
  via,              // added to
  host,             // as the rules say
  upgrade,          // where a tunnel is asked for
  date,             // of a response: the server's own
  forwarded,        // Forwarded, and all below: believed of trusted peers only
  forwarded_for,    // X-Forwarded-For
  forwarded_host,   // X-Forwarded-Host
  forwarded_proto,  // X-Forwarded-Proto
  forwarded_other,  // X-Real-IP, X-Forwarded-Port ...
};

FieldKind kind_of(std::string_view name) noexcept;

// is_named tells whether a Connection field among `fields` names this one as one of the hop. It cannot name what says
// where the request goes, what frames it, who asks or where from.
bool is_named(std::span<const Header> fields, const Header& field, FieldKind kind) noexcept;
// names_any tells whether a value of Connection names anything but what every connection says.
bool names_any(std::string_view connection) noexcept;

// is_twin tells of a field whose name some servers cannot tell from another's, because they take `_` for `-`: one that
// a proxy sets or drops, or that is there too.
bool is_twin(std::span<const Header> fields, std::string_view name, std::span<const std::string_view> dropped) noexcept;

bool is_among(std::string_view name, std::span<const std::string_view> names) noexcept;

// may_trail tells whether a field may be passed on behind chunked content: none that frames, routes, authenticates or
// changes what the content is (RFC 9110, 6.5.1).
bool may_trail(std::string_view name) noexcept;

// is_tunnel tells whether an upgrade to one of these protocols ends in a tunnel. HTTP/2 in one would be requests that nobody here
// has looked at, and TLS is no upstream's business.
bool is_tunnel(std::string_view upgrade) noexcept;

// write_last_chunk writes the end of chunked content, with those of `trailers` that may be passed on and that `drops` does not
// name. They are as ChunkedDecoder keeps them.
std::string_view write_last_chunk(std::span<char> into, std::string_view trailers,
                                  std::span<const std::string_view> drops) noexcept;

}  // namespace coir::http
