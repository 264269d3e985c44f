#pragma once

#include <coir/port/needs_fibers.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace coir::http {

// UpstreamServer is one of the servers that answer for a proxy or a FastCGI application: "http://host:port",
// "https://host" or "unix:/run/app.sock"; for FastCGI "host:port" or a Unix socket.
struct UpstreamServer {
  static constexpr std::size_t kMost = 16;  // in one group

  constexpr UpstreamServer() noexcept = default;
  constexpr UpstreamServer(const char* address) noexcept : url(address) {}
  constexpr UpstreamServer(std::string_view address, unsigned share = 1) noexcept : url(address), weight(share) {}

  std::string_view url = {};
  unsigned weight = 1;  // its share, 1 to 100
};

// Balance is how one of several servers is chosen.
enum class Balance : std::uint8_t {
  round_robin,        // in turn, by weight (smoothly, as nginx does)
  least_connections,  // the one with the fewest exchanges in progress, for its weight
  hash,               // by the client's address: the same client gets the same server while that is up (rendezvous)
};

// UpstreamInfo is what a server is like at a moment, and what became of exchanges so far. Its views end with the call that
// shows it.
struct UpstreamInfo {
  std::string_view protocol;  // "http" or "fastcgi"
  std::string_view group;     // the prefix of the first route that has it, or what an application answers
  std::string_view host;      // the hosts of that route; empty: any
  std::string_view server;    // its address
  bool up = true;
  std::size_t in_use = 0;      // connections of exchanges, streams and tunnels
  std::size_t resting = 0;     // connections that wait for the next exchange
  std::uint64_t requests = 0;  // times that it was chosen for an exchange
  std::uint64_t failures = 0;  // of these
  std::uint64_t failed_checks = 0;
  std::uint64_t downs = 0;  // times that it has gone down
};

// UpstreamNews says that a server has gone down or has come back. Its views end with the call that reports it.
struct UpstreamNews {
  std::string_view server;  // its address, "http://host:port"
  bool up = false;
  std::string_view why;  // a phrase for logs; empty if it is up
};

}  // namespace coir::http
