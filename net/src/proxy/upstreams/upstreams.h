#pragma once

#include <coir/callable.h>
#include <coir/port/needs_fibers.h>

#include <coir/deadline.h>
#include <coir/detail/chrono.h>
#include <coir/error.h>
#include <coir/http/detail/duration_histogram.h>
#include <coir/http/detail/upstream_server.h>

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

// UpstreamHealth is how Upstreams::watch asks servers whether they are well: by GET, on a connection of its own. A final
// response of 200 to 399 within `timeout` is well. Its views outlive the group.
struct UpstreamHealth {
  std::string_view path = {};  // a path, maybe with a query; empty: servers are only connected to, as watch tells
  std::string_view host = {};  // what Host says; empty: the server's own name
  std::chrono::milliseconds interval{5'000};  // from the begin of one round to the next, a tenth more or less
  std::chrono::milliseconds timeout{2'000};   // of one check
  std::uint32_t failures = 3;   // so many checks that fail in a row take a server out; of the first of all, one
  std::uint32_t successes = 2;  // so many that succeed in a row bring it back
};

struct UpstreamOptions {
  Balance balance = Balance::round_robin;
  const TlsContext* tls = nullptr;  // for https: a client's context, which outlives the group
  std::uint32_t most_resting = 64;  // connections that rest, for each server
  // A connection rests no longer, and ends a second before the server's own Keep-Alive would. 0: none rests.
  std::chrono::seconds idle_time{30};
  // So many exchanges, streams and tunnels one server has at most. One more goes to another server; where all that may be
  // asked have so many, it waits for one to end, as long as a connection may take, and is then answered 503. 0: any
  // number.
  std::uint32_t most_in_use = 0;
  // How long a server may take to accept a connection while another is left that may be asked. Its name, connection and
  // TLS together then have half of the time that is left, and this long at least. A server that takes longer is skipped
  // at once, as after `failures`.
  std::chrono::milliseconds connect{1'000};
  // So many failures in a row have one of several servers left alone: for a second, then twice as long each time, up to
  // `longest`. While all servers are left alone, those that have hung up are asked all the same. A failure is no
  // connection, no head of a response, or one that is none; nothing that goes wrong behind a head or while content is
  // sent to the server, which clients can bring about. A failure while a server is left alone does not extend the pause.
  std::uint32_t failures = 3;
  std::chrono::seconds longest{10};
  // A server that has come back takes its share of exchanges bit by bit over this time. 0: at once.
  std::chrono::milliseconds slow_start{0};
  UpstreamHealth health = {};
  // on_change hears when a server has gone down and when it has come back, by exchanges or by checks, in the order of
  // events; a server that is up at start is no news. It must not wait. Null: nobody hears.
  Callable<void(const UpstreamNews& news)> on_change;
};

// UpstreamServerState is what one server of a group is like at a moment, and what became of exchanges so far.
struct UpstreamServerState {
  bool up = true;          // it has neither failed so often, nor its checks, that it is told to be down
  std::size_t in_use = 0;  // as UpstreamState's
  std::size_t resting = 0;
  std::uint64_t requests = 0;     // times that it was chosen for an exchange
  std::uint64_t unreachable = 0;  // of these: no connection
  std::uint64_t cut = 0;          // it hung up before its response was whole
  std::uint64_t malformed = 0;    // its response was none
  std::uint64_t oversized = 0;    // the head of its response was too long
  std::uint64_t timed_out = 0;    // neither a connection nor a byte in time
  std::uint64_t failed_checks = 0;
  std::uint64_t downs = 0;  // times that it has gone down
};

// UpstreamState is what a group is like at a moment.
struct UpstreamState {
  std::size_t servers = 0;
  std::size_t answering = 0;      // not left alone
  std::size_t in_use = 0;         // connections of exchanges, streams and tunnels
  std::size_t resting = 0;        // connections that wait for the next exchange
  std::size_t waiting = 0;        // exchanges that wait for one to end, by UpstreamOptions::most_in_use
  std::uint64_t unavailable = 0;  // exchanges for which no server might be asked
};

// Upstreams is a group of servers that exchanges are forwarded to, with a pool of connections for each. A host's name is
// looked up again when its answer's time is over, and the connections to addresses that are gone are then closed. If a
// server cannot be connected to, within UpstreamOptions::connect, the next is tried. A server that fails is left alone for a while, unless it is the
// only one; one whose checks fail is not asked, even then. It outlives the exchanges, streams and tunnels that are
// forwarded to it, and is destroyed inside the run, whose end waits for what rests in its pools. Move-only.
class Upstreams {
 public:
  static constexpr std::size_t kMost = UpstreamServer::kMost;

  // Errors: invalid (no server, more than kMost, an address, a weight or a path of health that is
  // none), unsupported (https without UpstreamOptions::tls), no_memory. No server is contacted yet.
  [[nodiscard]] static std::expected<Upstreams, Error> create(std::span<const UpstreamServer> servers,
                                                              const UpstreamOptions& options = {}) noexcept;
  // create with one server.
  [[nodiscard]] static std::expected<Upstreams, Error> create(std::string_view url,
                                                              const UpstreamOptions& options = {}) noexcept {
    const UpstreamServer one{url};
    return create({&one, 1}, options);
  }
  Upstreams(Upstreams&& other) noexcept : group_(std::exchange(other.group_, nullptr)) {}
  Upstreams& operator=(Upstreams&&) = delete;
  ~Upstreams();

  // watch looks after the servers from now on, until the group is destroyed: by UpstreamHealth::path in rounds, of all
  // servers at once. Without a path it connects to each, and closes, at once, so that on_change hears who is down at
  // start, and later to those that could not be connected to, with longer and longer pauses up to `longest`, until they
  // are back. Idempotent. On a fiber; costs one that rests, of a stack of 16 KB, and one for each server while a round
  // lasts. Errors: those of spawn: cancelled, timed_out, closed, invalid, unsupported, limit, no_memory, deadlock.
  [[nodiscard]] std::expected<void, Error> watch() noexcept;

  UpstreamGroup& group() const noexcept { return *group_; }
  // state, size, server, latency and name may be asked for by any thread. `index` is below size.
  UpstreamState state() const noexcept;
  std::size_t size() const noexcept;
  UpstreamServerState server(std::size_t index) const noexcept;
  // latency is of the responses of a server: from the time that a request was sent, or that its last content was, to the
  // head of the response.
  const DurationHistogram& latency(std::size_t index) const noexcept;
  // name writes a server's address, "http://host:port" or "unix:/path", into `room`, kMostName bytes at most.
  std::string_view name(std::size_t index, std::span<char> room) const noexcept;

  static constexpr std::size_t kMostName = 288;

 private:
  explicit Upstreams(UpstreamGroup& group) noexcept : group_(&group) {}

  UpstreamGroup* group_;
};

}  // namespace coir::http
