#pragma once

#include <coir/net/address.h>
#include <netinet/in.h>

#include <cstddef>
#include <span>
#include <string_view>

// OwnNames is what clients may call this machine by, as it is now: its host name, localhost, 127.0.0.1, ::1, and the
// first of its other addresses. An IPv6 address that is valid on one link only is left out: a certificate cannot name
// the link.
class OwnNames {
 public:
  static constexpr std::size_t kMostAddresses = 8;

  // Asks the kernel for its interfaces; where that fails there are no other addresses. Takes 4 KB of stack, with what
  // it calls. Never waits.
  OwnNames() noexcept;
  OwnNames(const OwnNames&) = delete;
  OwnNames& operator=(const OwnNames&) = delete;

  // The first is the host name. They are the object's.
  std::span<const std::string_view> all() const noexcept { return {names_, count_}; }

 private:
  void add_addresses() noexcept;
  void add(const coir::Address& address) noexcept;

  char host_[64] = "localhost";
  char text_[kMostAddresses][INET6_ADDRSTRLEN + 8];  // with brackets and a port
  std::string_view names_[4 + kMostAddresses];
  std::size_t count_ = 0;
};
