#pragma once

#include <coir/http/wire/url.h>

#include <optional>
#include <string_view>

namespace coir::http {

// Proxies is what the environment says of proxies, as it was when read_environment was called: the variables may
// change.
struct Proxies {
  std::string_view plain;   // http_proxy
  std::string_view secure;  // https_proxy
  std::string_view none;    // no_proxy

  Proxies() noexcept = default;
  Proxies(const Proxies&) = delete;
  Proxies& operator=(const Proxies&) = delete;

  // If the variables have more than 1 KB in all, choose returns an error.
  void read_environment() noexcept;

  // choose returns the proxy for an address, absent for none. Errors: invalid (the variable cannot be read),
  // unsupported (the proxy is to be spoken to by another scheme than http).
  std::expected<std::optional<Url>, Error> choose(const Url& url) const noexcept;

 private:
  void keep(std::string_view& where, const char* lower, const char* upper) noexcept;

  std::size_t used_ = 0;
  char texts_[1024];
};

// is_excepted tells whether a list as no_proxy has it, "board.lan, .example.org, 10.0.0.1:8080, 10.0.0.0/8, *", names
// this host: the very host, a domain that it lies in, for an address the network, or all.
bool is_excepted(std::string_view list, std::string_view host, std::uint16_t port) noexcept;

}  // namespace coir::http
