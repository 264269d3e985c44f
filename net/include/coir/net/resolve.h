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

// Addresses is what a name resolves to: the first few that the resolver gives, in its order, the best first. A value.
class Addresses {
 public:
  static constexpr std::size_t kMost = 8;

  std::size_t size() const noexcept { return count_; }
  Address operator[](std::size_t index) const noexcept;

  // add takes one more over; false where there is no room, or it is neither IPv4 nor IPv6.
  bool add(const sockaddr* address) noexcept;
  // set_port is for all of them.
  void set_port(std::uint16_t port) noexcept { port_ = port; }

 private:
  // An Address has room for a Unix path; these pass through small stacks.
  struct Entry {
    unsigned char bytes[16];
    std::uint32_t scope;
    bool ipv6;
  };
  Entry entries_[kMost];
  std::uint16_t port_ = 0;
  std::uint8_t count_ = 0;
};

// resolve finds the addresses of a host by the machine's resolver: /etc/hosts, then the name servers of
// /etc/resolv.conf, IPv4 and IPv6. A host that is an address ("192.0.2.1", "2001:db8::1", no brackets) is answered at
// once, without a thread, whatever the deadline.
//
//   auto found = coir::resolve("time.example", 123, Deadline::after(3s));
//   for (std::size_t i = 0; found && i < found->size(); ++i) if (auto stream = connect((*found)[i])) ...
//
// On a fiber, and on a plain thread of a build with several workers, the lookup runs on a thread of coir/blocking.h: at
// the deadline, and when a fiber is cancelled, the caller goes on at once, and the lookup ends later on its thread.
// Until then it is one of the board's number of threads: with name servers that never answer, further calls wait their
// turn, by their own deadlines.
//
// In a build without fibers, on a plain thread of a single-worker build, and on one to which system calls are denied,
// the lookup just runs and the deadline is not looked at: the resolver gives up by itself after the timeout and
// attempts of /etc/resolv.conf, 5 s each unless that says otherwise. It wants 16 KB of stack there.
//
// Errors: not_found (no such host, or it has no address), temporary (no name server answered in time, or none could),
// invalid (not a host's name), timed_out, cancelled; system (a name server refused, EPROTO; the kernel did); those of
// blocking.
[[nodiscard]] std::expected<Addresses, Error> resolve(std::string_view host, std::uint16_t port,
                                                      Deadline deadline = Deadline::never()) noexcept;

}  // namespace coir
