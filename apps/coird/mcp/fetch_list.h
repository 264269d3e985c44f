#pragma once

#include <coir/net/address.h>

#include <cstdint>
#include <span>
#include <string_view>

// FetchList is the hosts that --mcp-fetch-allow names, as HOST or HOST:PORT; without a port 80 and 443.
//
//   api.example      that host                *.example   hosts below it
//   192.168.1.9      that address             *           any host
//
// A host by name has to have addresses of the public Internet. Others, this machine's and those of the local network,
// are reached only where the list names the address itself.
class FetchList {
 public:
  constexpr FetchList() noexcept = default;
  explicit constexpr FetchList(std::span<const std::string_view> entries) noexcept : entries_(entries) {}

  static bool is_entry(std::string_view text) noexcept;

  // admits tells whether a host, without brackets, may be asked, and `reaches` whether one of its addresses may.
  bool admits(std::string_view host, std::uint16_t port) const noexcept;
  bool reaches(const coir::Address& address) const noexcept;

 private:
  std::span<const std::string_view> entries_;
};
