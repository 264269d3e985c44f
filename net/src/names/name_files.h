#pragma once

#include <coir/net/address.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

// /etc/hosts and /etc/resolv.conf. They are read anew for each lookup, in place: a page or two that the kernel has in its
// cache.
namespace coir::names {

// NameServers is what /etc/resolv.conf says (resolv.conf(5)). Without a file, or without a server in it, the server is this
// machine's own, as in the C library.
struct NameServers {
  static constexpr std::size_t kMost = 3;  // as the C library

  void read(std::span<char> room) noexcept;

  Addresses servers;
  unsigned timeout_s = 5;
  unsigned attempts = 2;
  unsigned dots = 1;  // a name with fewer is looked for in `search` first
  std::string_view search() const noexcept { return {search_, search_size_}; }

 private:
  void take(std::string_view line) noexcept;

  char search_[256];
  std::size_t search_size_ = 0;
};

// next_word takes the next word of `line` off it; an empty one at its end.
std::string_view next_word(std::string_view& line) noexcept;

// find_in_hosts adds the addresses that /etc/hosts has for the host. True: there are some.
bool find_in_hosts(std::string_view host, Addresses& found, std::span<char> room) noexcept;

// add_literal adds a host that is an address itself: "192.0.2.1", "2001:db8::1", "fe80::1%eth0". False: it is none.
bool add_literal(std::string_view host, Addresses& to) noexcept;

}  // namespace coir::names
