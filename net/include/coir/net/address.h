#pragma once

// Addresses of sockets, and names that are resolved to them.
//
//   auto listening = Address::parse("[::1]:8080");
//   if (!listening) return complain(listening.error());
//   auto found = resolve("time.example", 123, Deadline::after(3s));
//   if (found && found->size() > 0) show((*found)[0].port());

#include <coir/deadline.h>
#include <coir/error.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string_view>

namespace coir {

namespace names {
struct PackedAddresses;
}

// Address is where a socket listens or connects to: IPv4 or IPv6 address and port, or the path of a Unix socket. A
// value; it owns nothing outside itself and never asks a name server.
class Address {
 public:
  enum class Family : std::uint8_t { ipv4, ipv6, unix_path };

  // Longest text that format() writes: a Unix path with its prefix.
  static constexpr std::size_t kMaxText = 5 + 108;

  // parse reads "127.0.0.1:80", "[::1]:80", ":80" and "*:80" (every address of this machine, both families where the
  // kernel has IPv6), "unix:/run/coird.sock", "unix:@name" (the abstract name space). Port 0 lets the kernel choose
  // when listening. Error: invalid, of which describe names the part at fault.
  [[nodiscard]] static std::expected<Address, Error> parse(std::string_view text) noexcept;

  // from_sockaddr takes over what accept(2), getsockname(2) or getpeername(2) filled in.
  static Address from_sockaddr(const sockaddr* address, socklen_t length) noexcept;

  // format writes the text that parse() reads into `out` and returns the part written; empty when `out` is too small.
  std::string_view format(std::span<char> out) const noexcept;

  Family family() const noexcept { return family_; }
  // port is 0 for a Unix socket.
  std::uint16_t port() const noexcept;
  // is_any tells that ":80" or "*:80" was asked for: one IPv6 socket serves both families, or an IPv4 one without IPv6.
  bool is_any() const noexcept { return any_; }
  // as_ipv4_any is what is left of "*:80" on a kernel without IPv6.
  Address as_ipv4_any() const noexcept;
  // with_port is the same address with another port. Not for a Unix socket.
  Address with_port(std::uint16_t port) const noexcept;
  // unix_path is empty unless the family is unix_path; an abstract name starts with NUL.
  std::string_view unix_path() const noexcept;

  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(storage_); }
  socklen_t length() const noexcept { return length_; }

 private:
  static Address ip(Family family, const void* bytes, std::uint16_t port, bool any) noexcept;

  // Holds a sockaddr_un, the largest of the three.
  alignas(8) unsigned char storage_[112] = {};
  std::uint8_t length_ = 0;
  Family family_ = Family::ipv4;
  bool any_ = false;
};

// is_public (public_address.cpp) tells whether an address is one of the public Internet's: no loopback, private,
// link-local, multicast, documentation's or otherwise reserved range of IANA's registries for special purposes, and no
// Unix socket. An IPv6 address that carries an IPv4 one (mapped, NAT64, 6to4) is as public as that; Teredo's, which
// hide theirs, are not.
// From any context; no allocation.
bool is_public(const Address& address) noexcept;

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

// resolve (resolve.cpp) finds the addresses of a host: in /etc/hosts, then by the name servers of /etc/resolv.conf
// (resolv.conf(5): nameserver, search, timeout, attempts, ndots), IPv4 and IPv6, the best to connect to first (RFC
// 6724). A host that is an address ("192.0.2.1", "2001:db8::1", "fe80::1%eth0", no brackets) is answered at once,
// whatever the deadline.
//
//   auto found = coir::resolve("time.example", 123, Deadline::after(3s));
//   for (std::size_t i = 0; found && i < found->size(); ++i) {
//     if (auto stream = TcpStream::connect((*found)[i], deadline)) return talk(*stream);
//   }
//
// From a fiber, a thread or a build without fibers, alike: no thread is made, and the call ends at the deadline, when its
// fiber is cancelled, or once the name servers' patience (timeout) is over. Their answers, "there is no such name" too,
// are kept for as long as they allow, in 4 KB for the whole process. "localhost" and the names below it are this
// machine (RFC 6761). A name that ends in ".local" is resolved like any other.
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
