#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string_view>

#include <coir/deadline.h>
#include <coir/error.h>
#include <coir/net/address.h>

struct sockaddr;

namespace coir {
namespace names {
struct PackedAddresses;
}

// Addresses is what a name resolves to: the first few that the resolver gives, in its order, the best first. A value.
class Addresses {
 public:
  static constexpr std::size_t kMost = 8;

  std::size_t size() const noexcept { return count_; }
  Address operator[](std::size_t index) const noexcept;

  // add takes one more over; false where there is no room, or it is neither IPv4 nor IPv6.
  bool add(const sockaddr* address) noexcept;
  void swap(std::size_t one, std::size_t other) noexcept;
  // set_port is for all of them.
  void set_port(std::uint16_t port) noexcept { port_ = port; }

  // valid_until is when to ask again: the time that the name servers gave has then passed. Never for what needed no
  // server.
  Deadline valid_until() const noexcept { return valid_until_; }

 private:
  friend struct names::PackedAddresses;

  // An Address has room for a Unix path; these pass through small stacks.
  struct Entry {
    static constexpr std::uint32_t kIpv4 = UINT32_MAX;  // instead of a scope

    unsigned char bytes[16];
    std::uint32_t scope;
  };
  Entry entries_[kMost];
  Deadline valid_until_ = Deadline::never();
  std::uint16_t port_ = 0;
  std::uint8_t count_ = 0;
};

// resolve finds the addresses of a host: in /etc/hosts, then by the name servers of /etc/resolv.conf (resolv.conf(5):
// nameserver, search, timeout, attempts, ndots), IPv4 and IPv6, the best to connect to first (RFC 6724). A host that is
// an address ("192.0.2.1", "2001:db8::1", "fe80::1%eth0", no brackets) is answered at once, whatever the deadline.
//
//   auto found = coir::resolve("time.example", 123, Deadline::after(3s));
//   for (std::size_t i = 0; found && i < found->size(); ++i) if (auto stream = connect((*found)[i])) ...
//
// From a fiber, a thread or a build without fibers, alike: no thread is made, and the call ends at the deadline, when its
// fiber is cancelled, or once the name servers' patience (timeout) is over. Their answers, "there is no such name" too, are kept for as
// long as they allow, in 4 KB for the whole process. "localhost" and the names below it are this machine
// (RFC 6761). A name of ".local" is asked for as any other.
//
// A name server is asked by UDP from a port and with a number that nobody can foresee; what does not answer that question
// is dropped. The next one is asked besides when one has been silent for a second, or failed. A truncated answer is asked
// for again by TCP.
//
// Errors: not_found (no such host, or it has no address), temporary (no name server answered in time, or none could),
// invalid (not a host's name), timed_out, cancelled; no_memory, limit (no descriptor is left); system (a name server
// refused, EPROTO; the kernel did). Cost: 4 KB of account::buffers and a descriptor for each server asked while it lasts,
// two files read; 1 KB of stack.
[[nodiscard]] std::expected<Addresses, Error> resolve(std::string_view host, std::uint16_t port,
                                                      Deadline deadline = Deadline::never()) noexcept;

}  // namespace coir
