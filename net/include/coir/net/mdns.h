#pragma once

// The machine is found as board.local, and its services in lists.
//
//   const mdns::Service services[] = {{.type = "_http._tcp", .port = 80}};
//   auto ended = mdns::serve({.name = "board", .services = services}, deadline);

#include <coir/config.h>

#if !COIR_MDNS
#error "this build of coir has no multicast DNS: configure it with -DCOIR_MDNS=ON"
#endif

#include <coir/callable.h>
#include <coir/deadline.h>
#include <coir/errno.h>
#include <coir/error.h>
#include <coir/ledger.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string_view>

// Multicast DNS (RFC 6762) and service discovery (RFC 6763): the machine is found as NAME.local, and what it serves in
// browsers' lists, without a server of names.
namespace coir::mdns {

inline constexpr std::size_t kMostServices = 5;

// The most that serve charges to account::mdns while it runs.
inline constexpr std::size_t kServeBytes = 10 * 1024;

// Service is something that this machine offers.
struct Service {
  std::string_view type;  // "_http._tcp"
  std::uint16_t port = 0;
  std::span<const std::string_view> text = {};  // "path=/" ...; 256 bytes in all, with one more for each
  std::string_view instance = {};  // what lists show, 63 bytes of UTF-8 without a dot; empty: the host's name
};

struct Options {
  std::string_view name;  // of this machine, without ".local": up to 63 letters, digits and hyphens
  std::span<const Service> services = {};
  // serve calls it with each name that was taken, once no other machine objects: the name itself, or if another machine
  // has it, NAME-2, NAME-3 ..., which is then kept. On the caller's fiber; it should be short. May be empty.
  Callable<void(std::string_view name)> named = {};
};

// bad_name is why `name` cannot be Options::name, as a phrase; null: it can be.
const char* bad_name(std::string_view name) noexcept;

// serve answers for the name until the deadline passes or the caller is cancelled, and then says goodbye. On every
// interface that is up and takes multicast, loopback left out, with the addresses that each has: the name is probed for,
// announced twice, and both again when a link or an address changes.
//
// Beside another responder on the machine, such as avahi, both share the port. Texts that `options` refers to are copied.
// From a fiber with a stack of 8 KB, from a thread, and without fibers. While nothing happens it holds its records, charged to
// account::mdns, three descriptors and no buffer.
// Errors: timed_out (the deadline passed), cancelled; invalid (a name or a service is no good), no_memory, limit (no
// descriptor is left), unsupported, system (no socket can be had on port 5353).
[[nodiscard]] std::expected<void, Error> serve(const Options& options, Deadline deadline = Deadline::never()) noexcept;

}  // namespace coir::mdns

namespace coir::account {
extern Account mdns;  // what a responder keeps
}  // namespace coir::account
