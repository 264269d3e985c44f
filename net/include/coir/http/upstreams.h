#pragma once

#include <coir/port/needs_fibers.h>

#if !COIR_PROXY
#error "this build of coir has no reverse proxy: configure it with -DCOIR_PROXY=ON"
#endif

#include <coir/deadline.h>
#include <coir/error.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string_view>
#include <utility>

namespace coir {
class TlsContext;
}

namespace coir::http {

class UpstreamGroup;

// UpstreamServer is one server of a group: "http://host:port", "https://host", "unix:/run/app.sock", or "host:port" of
// another protocol. What stands behind the host is not looked at.
struct UpstreamServer {
  std::string_view url = {};
  unsigned weight = 1;  // its share, 1 to 100
};

// Balance is how one of several servers is chosen.
enum class Balance : std::uint8_t {
  round_robin,        // in turn, by weight (smoothly, as nginx does)
  least_connections,  // the one with the fewest exchanges under way, for its weight
  hash,  // by ForwardRules::hash_key: the same key goes to the same server while that is there (rendezvous)
};

struct UpstreamOptions {
  Balance balance = Balance::round_robin;
  const TlsContext* tls = nullptr;  // for https: a client's context, which outlives the group
  std::uint32_t most_resting = 64;  // connections that rest, for each server
  // So many failures in a row have one of several servers left alone: for a second, then twice as long each time, up to `longest`.
  std::uint32_t failures = 3;
  std::chrono::seconds longest{10};
};

// UpstreamState is what a group is like at a moment.
struct UpstreamState {
  std::size_t servers = 0;
  std::size_t answering = 0;  // not left alone
  std::size_t in_use = 0;     // connections of exchanges, streams and tunnels
  std::size_t resting = 0;    // connections that wait for the next exchange
};

// Upstreams is a group of servers that exchanges are forwarded to, with a pool of connections for each. A host's name is
// looked up again when its answer's time is over, and the connections to addresses that are gone are then closed. A server
// that cannot be connected to makes way for the next at once. It outlives the exchanges, streams and tunnels that are
// forwarded to it, and is destroyed inside the run, whose end waits for what rests in its pools. Move-only.
class Upstreams {
 public:
  static constexpr std::size_t kMost = 16;

  // Errors: invalid (no server, more than kMost, an address or a weight that is none), unsupported (https without
  // UpstreamOptions::tls), no_memory. Nobody is asked yet.
  [[nodiscard]] static std::expected<Upstreams, Error> create(std::span<const UpstreamServer> servers,
                                                              const UpstreamOptions& options = {}) noexcept;
  // create with one server.
  [[nodiscard]] static std::expected<Upstreams, Error> create(std::string_view url,
                                                              const UpstreamOptions& options = {}) noexcept {
    const UpstreamServer one{.url = url};
    return create({&one, 1}, options);
  }
  Upstreams(Upstreams&& other) noexcept : group_(std::exchange(other.group_, nullptr)) {}
  Upstreams& operator=(Upstreams&&) = delete;
  ~Upstreams();

  UpstreamGroup& group() const noexcept { return *group_; }
  // state may be asked for by any thread.
  UpstreamState state() const noexcept;

 private:
  explicit Upstreams(UpstreamGroup& group) noexcept : group_(&group) {}

  UpstreamGroup* group_;
};

}  // namespace coir::http
