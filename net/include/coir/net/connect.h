#pragma once

#include <coir/deadline.h>
#include <coir/error.h>
#include <coir/net/resolve.h>
#include <coir/net/tcp.h>

#include <cstdint>
#include <expected>
#include <string_view>

namespace coir {

// connect makes a connection to a host: its name is resolved (coir/net/resolve.h; an address needs no lookup), and of
// its addresses the first that accepts is taken, IPv6 and IPv4 in turn, the resolver's best first.
//
//   auto stream = coir::connect("time.example", 80, Deadline::after(5s));
//   if (!stream) return complain(describe(stream.error()));
//
// An address has a quarter of a second to answer before the next is tried beside it, and an address that fails makes
// way at once ("Happy Eyeballs", RFC 8305). Later connections are closed.
//
// From a fiber, a thread or a build without fibers; all of it ends within `deadline`. Errors: those of resolve and of
// wait_several; system, with ECONNREFUSED if any address refused, else with the first address's errno (EHOSTUNREACH,
// ENETUNREACH ...). Cost: a descriptor for each address under way, at most eight.
[[nodiscard]] std::expected<TcpStream, Error> connect(std::string_view host, std::uint16_t port,
                                                      Deadline deadline = Deadline::never()) noexcept;

// connect to one of these, as they were resolved. Errors: not_found (there are none); those of wait_several; invalid
// (an address cannot be connected to); system, as above.
[[nodiscard]] std::expected<TcpStream, Error> connect(const Addresses& to,
                                                      Deadline deadline = Deadline::never()) noexcept;

}  // namespace coir
