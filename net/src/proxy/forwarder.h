#pragma once

#include <coir/port/needs_fibers.h>

#include <coir/atomic.h>
#include <coir/deadline.h>
#include <coir/error.h>
#include <coir/http/exchange.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "proxy/upstreams/upstreams.h"

namespace coir::http {

class ForwardKeeper;

// ForwardRules say how exchanges of one route are forwarded. They, and everything they refer to, must outlive the exchanges,
// also those that wait for their upstream without their handler, but not those that have become streams and tunnels: `streams`
// counts both. Lines are the program's own, "Name: value\r\n" each, and trusted; a field that is set by lines is named in
// `drops` too, so that the other side cannot send another.
struct ForwardRules {
  std::string_view host = {};       // what the upstream is told as Host; empty: what the client said
  std::string_view pseudonym = {};  // this proxy's name in Via, by which loops are found; empty: "coir"
  bool sends_forwarded = false;     // RFC 7239's Forwarded, beside X-Forwarded-For, -Proto and -Host
  // Each request has an X-Request-ID, which the upstream is sent and the access log has as "id=...": a trusted peer's,
  // if it is one of up to 64 visible characters, else one of 16 hexadecimal digits that is made.
  bool request_id = false;
  // A response with a longer head is answered 502. 48 KB at most; memory for it is taken at need.
  std::uint32_t max_head = 12 * 1024;
  std::uint64_t max_body = UINT64_MAX;  // content over it, or over the server's own limit, is answered 413
  // ServerOptions::body_timeout and body_rate for content; 0, or absent: the server's own.
  std::chrono::milliseconds body_timeout{0};
  std::optional<std::uint32_t> body_rate = {};
  std::string_view request_lines = {};
  std::span<const std::string_view> request_drops = {};
  std::string_view response_lines = {};
  std::span<const std::string_view> response_drops = {};
  // How long a connection, the first byte of a response and each further one may take. A stream or tunnel that rests
  // has no such limit but rest_idle: its ends are looked after by the kernel's keep-alive.
  std::chrono::milliseconds connect{5'000};
  std::chrono::milliseconds first_byte{60'000};
  std::chrono::milliseconds idle{60'000};
  // A response whose content pauses for so long goes on without a fiber. An event stream does at once.
  std::chrono::milliseconds rest_after{1'000};
  // A stream or tunnel on which nothing has moved for so long, to a second, is cut. 0: never.
  std::chrono::milliseconds rest_idle{0};
  std::chrono::seconds retry_after{1};  // what 503 says
  // While so many exchanges, which `waiting` counts, wait for a response to begin, one more is answered 503 at once. 0:
  // only the ledger bounds them.
  std::uint32_t max_waiting = 0;
  Atomic<std::uint32_t>* waiting = nullptr;
  // Counts the streams, tunnels and waiting exchanges that come of it while they last: so long the rules and their group stay.
  // May be null.
  Atomic<std::uint32_t>* streams = nullptr;
};

// RequestRules are how a route's rules apply to one request.
struct RequestRules {
  // Whether the peer is a proxy of one's own, whose Forwarded and X-Forwarded-* are added to. Those of any other peer
  // are replaced.
  bool trusts_peer = false;
  bool joins = false;  // a slash stands behind `base`
  // `base` is sent instead of so many bytes of the request's path. The caller has checked that the whole is a path. It lasts as
  // long as the route's rules.
  std::uint32_t replaced = 0;
  std::string_view base = {};
  std::uint64_t hash_key = 0;  // for a group that chooses by hash
};

// ForwardFailure is why an upstream has not answered an exchange, or not to its end.
enum class ForwardFailure : std::uint8_t {
  refused,          // 502: nobody could be connected to
  unresolved,       // 502: there is no address for the name
  untrusted,        // 502: no TLS with the upstream
  cut_off,          // 502, or content cut off: the upstream hung up
  malformed,        // 502, or content cut off: the upstream said what is no response
  all_down,         // 503: no upstream may be asked
  no_room,          // 503: there is no memory or descriptor for a connection
  connect_timeout,  // 504
  timeout,          // 504, or content cut off: the upstream was silent
  loop,             // 508: the request has been here before
  crowded,          // 503: ForwardRules::max_waiting requests wait, or all servers have UpstreamOptions::most_in_use
  head_too_long,    // 502: the head of the response is too long
};
inline constexpr std::size_t kForwardFailures = 12;

// failure_of tells what an error means: of a connection to one of `group`, or where none could be made.
ForwardFailure failure_of(Error error, bool connected, const UpstreamGroup& group) noexcept;

// word_of is a failure as logs and metrics have it: "cut-off". The access log has it as "why=cut-off".
const char* word_of(ForwardFailure failure) noexcept;

// ForwardCounters may be read by any thread.
struct ForwardCounters {
  Atomic<std::uint64_t> forwarded{0};                     // responses whose head came from an upstream
  Atomic<std::uint64_t> bad_gateway{0};                   // 502: no connection, hung up, or no response
  Atomic<std::uint64_t> unavailable{0};                   // 503: no upstream may be asked
  Atomic<std::uint64_t> timed_out{0};                     // 504
  Atomic<std::uint64_t> loops{0};                         // 508
  Atomic<std::uint64_t> retried{0};                       // on another connection
  Atomic<std::uint64_t> cut{0};                           // responses that an upstream did not end
  Atomic<std::uint64_t> cancelled{0};                     // upstreams left because their client had gone
  Atomic<std::uint64_t> limited{0};                       // 429, by a route's rate
  Atomic<std::uint64_t> silent{0};                        // streams and tunnels that were cut by rest_idle
  Atomic<std::uint64_t> failures[kForwardFailures] = {};  // by ForwardFailure

  void note(ForwardFailure failure) noexcept {
    failures[static_cast<std::size_t>(failure)].fetch_add(1, std::memory_order_relaxed);
  }
};

// Forwarder forwards exchanges to upstreams and keeps the streams and tunnels that come of them.
//
//   handler:  forwarder.forward(exchange, group, rules);
//
// Both ways bytes pass as they come, through one buffer of the exchange: whoever is slow slows the other side down.
// Framing is never copied: each head is parsed by the server's and the client's parser and written anew, and what they
// refuse is answered 400 or 502. Hop-by-hop fields stay behind. A stream or tunnel that rests is two records: no fiber,
// no buffer.
//
// One server's; it outlives the server's stop (forwarder.cpp).
class Forwarder {
 public:
  // Errors: no_memory.
  [[nodiscard]] static std::expected<Forwarder, Error> create() noexcept;
  Forwarder(Forwarder&& other) noexcept : keeper_(std::exchange(other.keeper_, nullptr)) {}
  Forwarder& operator=(Forwarder&&) = delete;
  ~Forwarder();

  // forward answers `exchange` by what an upstream of `group` answers, and returns when the response has been passed on,
  // goes on as a stream or tunnel, or once the upstream has been silent for a while: then the exchange goes on without
  // the handler, which must not answer it. In a handler, on a fiber.
  void forward(Exchange& exchange, UpstreamGroup& group, const ForwardRules& rules,
               const RequestRules& own = {}) noexcept;
  void forward(Exchange&, UpstreamGroup&, const ForwardRules&&, const RequestRules& = {}) = delete;

  ForwardCounters& counters() const noexcept;
  // streams is how many responses and tunnels rest.
  std::size_t streams() const noexcept;
  // waiting is how many exchanges wait for an upstream without a fiber.
  std::size_t waiting() const noexcept;

 private:
  explicit Forwarder(ForwardKeeper& keeper) noexcept : keeper_(&keeper) {}

  ForwardKeeper* keeper_;
};

}  // namespace coir::http
