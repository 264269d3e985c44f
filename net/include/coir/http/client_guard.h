#pragma once

#include <coir/net/address.h>

#include <cstdint>
#include <string_view>

namespace coir::http {

// ClientGuard says where a Client may go (ClientOptions::guard), for clients that are told by others what to fetch. It is
// asked twice: for the name of each hop, the first as every redirect's, before anything is looked up; and for each address
// that the name stands for, each time that a connection is made. Addresses that it does not admit are not connected
// to, and a hop that has none left fails as `invalid`, which describe_client tells.
//
//   struct OnlyPublic : ClientGuard { ... };
//   OnlyPublic guard{{.admits_host = &anybody, .admits_address = &is_public_one}};
//   auto client = Client::create({.guard = &guard});
//
// A client with a guard asks no proxy: a proxy would look the names up itself. Both functions are called from the request's fiber
// or thread; they must not wait.
struct ClientGuard {
  // `host` is a name or an address without brackets, in the case that the URL has; no dot is taken off its end.
  bool (*admits_host)(const ClientGuard& self, std::string_view host, std::uint16_t port) noexcept = nullptr;
  // `address` carries the port; it is a Unix socket's where ClientRequest::to names one.
  bool (*admits_address)(const ClientGuard& self, std::string_view host, const Address& address) noexcept = nullptr;
};

}  // namespace coir::http
