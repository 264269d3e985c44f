#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <expected>
#include <span>
#include <string_view>

namespace coir {

// Address is where a socket listens or connects to: IPv4 or IPv6 address and port, or the path of a Unix socket. A
// value; it owns nothing outside itself and never asks a name server.
class Address {
 public:
  enum class Family : std::uint8_t { ipv4, ipv6, unix_path };

  // Longest text that format() writes: a Unix path with its prefix.
  static constexpr std::size_t kMaxText = 5 + 108;

  // parse reads "127.0.0.1:80", "[::1]:80", ":80" and "*:80" (every address of this machine, both families where the
  // kernel has IPv6), "unix:/run/coird.sock", "unix:@name" (the abstract name space). Port 0 lets the kernel choose
  // when listening. The error is a static phrase naming the part at fault, for a message such as "--listen 'x':
  // PHRASE".
  [[nodiscard]] static std::expected<Address, const char*> parse(std::string_view text) noexcept;

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

}  // namespace coir
