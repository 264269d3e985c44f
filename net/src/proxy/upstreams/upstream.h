#pragma once

#include <coir/port/needs_fibers.h>

#include <coir/deadline.h>
#include <coir/detail/intrusive_list.h>
#include <coir/error.h>
#include <coir/event.h>
#include <coir/fiber.h>
#include <coir/net/address.h>
#include <coir/net/stream.h>
#include <coir/once.h>
#include <coir/spinlock.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <utility>

#include "http/session/keeper.h"
#include "outbound/connection_pool.h"
#include "outbound/dialler.h"
#include "proxy/upstreams/upstreams.h"

namespace coir::http {

struct UpstreamMember;

// UpstreamFault says why a lease has failed.
enum class UpstreamFault : std::uint8_t {
  stale,      // a reused connection was closed before a byte of a response: nothing is wrong with the upstream, but
              // others that rest have most likely ended too
  cut,        // it hung up before it sent a head
  malformed,  // what it sent is no head
  timed_out,  // it sent none in time
  // These are no failures of the server, which may have been made to do so by its clients; they are only counted.
  broken_off,  // it hung up, was silent or made no sense behind a head, or while it was sent content
  oversized,   // its head is too long
};

// UpstreamReason is why a server is down.
struct UpstreamReason {
  enum class Kind : std::uint8_t { error, cut, malformed, oversized, status };
  Kind kind = Kind::error;
  Dialler::Step step = Dialler::Step::first_byte;  // of `error`: the one that failed; first_byte: it was connected to
  std::uint16_t status = 0;                        // of a check
  Error error = {};
};

// UpstreamLease is a connection to an upstream for one exchange. It is ended by give_back, leave or failed; one that is
// dropped is left. Move-only; one word, as a tunnel that rests holds one.
class UpstreamLease {
 public:
  UpstreamLease() noexcept = default;
  explicit UpstreamLease(PooledConnection& connection) noexcept : connection_(&connection) {}
  UpstreamLease(UpstreamLease&& other) noexcept : connection_(std::exchange(other.connection_, nullptr)) {}
  UpstreamLease& operator=(UpstreamLease&& other) noexcept {
    if (this != &other) {
      leave();
      connection_ = std::exchange(other.connection_, nullptr);
    }
    return *this;
  }
  ~UpstreamLease() { leave(); }

  explicit operator bool() const noexcept { return connection_ != nullptr; }
  Stream& stream() const noexcept { return connection_->stream; }
  bool reused() const noexcept { return connection_->reused; }

  // hear_keep_alive has the connection rest no longer than a response says.
  void hear_keep_alive(const ParsedResponse& response) const noexcept { connection_->hear_keep_alive(response); }

  // answered counts the time since a request was sent, at the head of its response.
  void answered(std::int64_t sent_ns) const noexcept;

  // give_back ends the lease of a server that has answered as it should. The connection rests in the pool if it is
  // `reusable`: the exchange is over on both sides and nothing more has come. Otherwise it is closed in good order.
  // Idempotent. Never waits.
  void give_back(bool reusable) noexcept;

  // leave ends the lease where the server is neither to blame nor to praise, as when the client has gone, and closes the
  // connection in good order. Idempotent. Never waits.
  void leave() noexcept;

  // failed ends the lease and closes the connection; the group hears why. Idempotent. Never waits.
  void failed(UpstreamFault fault) noexcept;

 private:
  UpstreamMember& server() const noexcept;
  void close(bool in_good_order) noexcept;

  PooledConnection* connection_ = nullptr;
};

// UpstreamChoice is what the choice of an upstream depends on.
struct UpstreamChoice {
  std::uint64_t key = 0;     // for a group that chooses by hash
  bool must_be_new = false;  // no connection of the pool
};

// RoomWaiter is an exchange that waits until one of the servers may have one more. On the stack of its fiber.
struct RoomWaiter {
  const UpstreamChoice& choice;
  std::uint32_t tried;               // members that it does not want
  UpstreamMember* member = nullptr;  // whose lease it has been handed; guarded by the group's lock_
  Event handed;
  RoomWaiter* previous = nullptr;
  RoomWaiter* next = nullptr;
};

// UpstreamMember is one server of a group, and its pool. The group's lock_ guards the fields that change.
//
// A server is `down` once so many of its exchanges have failed in a row, or so many checks, or where it could not be
// connected to when the group began to be watched. It comes back by an exchange of this era that ends well, unless its
// checks fail, or by checks.
struct UpstreamMember : ConnectionPool {
  UpstreamMember(UpstreamGroup& of, const UpstreamOptions& options) noexcept
      : ConnectionPool({.most_resting = options.most_resting, .idle_time = options.idle_time, .watches = true}),
        group(of) {}

  UpstreamGroup& group;
  Address address;      // where there is no host to look up: an address, a Unix socket
  char host[256] = {};  // empty: `address` is all; else for the lookup and for TLS
  std::uint16_t port = 0;
  bool looked_up = false;  // by its name
  bool secure = false;
  unsigned weight = 1;

  int credit = 0;              // of the round robin
  std::uint32_t in_use = 0;    // leases
  std::uint32_t failures = 0;  // in a row
  Deadline out_until = Deadline::now();
  std::uint8_t skips = 0;           // in a row, of which each lasts twice as long as the one before
  bool hung_up = false;             // its last failure: it took a connection, and hung up or sent no head
  std::uint32_t failed_checks = 0;  // in a row
  std::uint32_t good_checks = 0;    // in a row
  bool failing = false;             // by its checks: it is not asked
  bool unreachable = false;         // the last that was tried of it was a connection, which failed
  bool down = false;
  bool told_down = false;     // on_change has heard so
  bool telling = false;       // on_change hears just now
  std::uint8_t era = 0;       // counts each going down
  std::int64_t rises_ns = 0;  // when it came back, while it takes a smaller share
  UpstreamReason reason;      // of `down`
  UpstreamServerState tally;  // its counters alone
  DurationHistogram latency;  // needs no lock

  Addresses known;                        // what its name stands for
  Once named;                             // `known` has an address, and always will; needs no lock
  Deadline look_again = Deadline::now();  // when to ask for its name
  Error unknown_for;                      // until then, where nothing is known: why
  bool looking = false;                   // somebody asks, where something is known
  Fiber asker;                            // of its name, while the old addresses are used
};

// UpstreamGroup is servers of which each may answer a request. It destroys them. It keeps no connections of the server
// for which it is asked, but it is told by it, as a Keeper, when that stops: then nothing rests in the pools any more,
// and nothing watches.
class UpstreamGroup final : public Keeper {
 public:
  UpstreamGroup(std::span<UpstreamMember> members, const UpstreamOptions& options) noexcept
      : members_(members), options_(options) {}
  UpstreamGroup(const UpstreamGroup&) = delete;
  UpstreamGroup& operator=(const UpstreamGroup&) = delete;
  ~UpstreamGroup();

  // take returns a connection of a member's pool, or a new one. If a member cannot be connected to, within
  // UpstreamOptions::connect, or its name or handshake takes half of the time, it tries the next; the last one has the
  // rest of the time. While each has most_in_use leases it waits for one to end; the server then has
  // UpstreamOptions::connect at least. Errors: timed_out, cancelled; busy (none has ended: 503), limit (no upstream may
  // be asked now: 503); all others say that none could be connected to (502).
  [[nodiscard]] std::expected<UpstreamLease, Error> take(const UpstreamChoice& choice, Deadline deadline) noexcept;

  // bounds_leases tells whether take may wait for a lease to end.
  bool bounds_leases() const noexcept { return options_.most_in_use != 0; }
  // note_server has the server of an exchange call stopping.
  void note_server(Exchange& exchange) noexcept;
  void stopping() noexcept override;

  std::span<const UpstreamMember> members() const noexcept { return members_; }
  UpstreamState state() const noexcept;
  UpstreamServerState state_of(const UpstreamMember& member) const noexcept;
  // upstream_health.cpp
  std::expected<void, Error> watch() noexcept;
  static std::string_view name_of(const UpstreamMember& member, std::span<char> room) noexcept;

 private:
  friend class UpstreamLease;

  // Under lock_: the member that is to be asked, of those not yet tried; null: there is none (upstream_choice.cpp).
  UpstreamMember* choose(const UpstreamChoice& choice, std::uint32_t tried) noexcept;
  bool may_be_asked(std::size_t index, std::uint32_t tried) const noexcept;
  bool is_well(std::size_t index, std::uint32_t tried) const noexcept;
  unsigned share_of(UpstreamMember& member) const noexcept;

  // upstream_names.cpp
  std::expected<void, Error> look_up(UpstreamMember& member, Deadline deadline) noexcept;
  std::expected<void, Error> ask_first(UpstreamMember& member, Deadline deadline) noexcept;
  void ask_beside(UpstreamMember& member) noexcept;
  std::expected<void, Error> ask_name(UpstreamMember& member, Deadline deadline) noexcept;
  // upstream_room.cpp: reserve counts a lease of a member that is not yet tried. If all have as many as they may, or
  // others wait, it waits in line until one has room, and `deadline` then leaves time to connect. end counts one that is
  // over, whose connection is closed or rests. Each change that makes room is followed by serve_line. Errors: busy (no
  // room in time), limit (no member may be asked), cancelled, timed_out (of a scope).
  std::expected<UpstreamMember*, Error> reserve(const UpstreamChoice& choice, std::uint32_t tried,
                                                Deadline& deadline) noexcept;
  std::expected<UpstreamMember*, Error> await_room(RoomWaiter& waiter, Deadline deadline) noexcept;
  Deadline next_return(std::uint32_t tried) const noexcept;
  void end(UpstreamMember& member) noexcept;
  void serve_line() noexcept;

  // upstream.cpp
  std::expected<PooledConnection*, UpstreamReason> connect(UpstreamMember& member, Deadline deadline,
                                                           std::chrono::nanoseconds connect) noexcept;
  std::expected<void, Error> dial(UpstreamMember& member, Dialler& dialler) noexcept;

  void reopen() noexcept;
  void rest(UpstreamMember& member, PooledConnection& connection) noexcept;
  void note_success(UpstreamMember& member, std::uint8_t era) noexcept;
  void count(UpstreamMember& member, std::uint64_t UpstreamServerState::* counter) noexcept;
  // note_failure skips a server for a while after UpstreamOptions::failures in a row, or `at_once`. If the exchange began
  // in another era, it only counts.
  void note_failure(UpstreamMember& member, std::uint8_t era, UpstreamReason reason, bool at_once = false) noexcept;
  // Under lock_.
  void go_down(UpstreamMember& member, UpstreamReason reason) noexcept;
  void come_back(UpstreamMember& member) noexcept;
  void tell(UpstreamMember& member) noexcept;
  // upstream_health.cpp
  void look_after() noexcept;
  void round(bool first) noexcept;
  void check(UpstreamMember& member, bool first) noexcept;
  std::expected<void, UpstreamReason> ask(UpstreamMember& member) noexcept;
  std::expected<void, UpstreamReason> converse(UpstreamMember& member, Stream& stream, Deadline deadline) noexcept;
  bool any_unreachable() const noexcept;

  std::span<UpstreamMember> members_;
  const UpstreamOptions options_;
  mutable Spinlock lock_;
  std::uint64_t unavailable_ = 0;               // guarded by lock_
  coir::detail::CountedList<RoomWaiter> line_;  // of those that wait for a lease; guarded by lock_
  Fiber watcher_;                               // of watch; guarded by lock_ while watching_
  Atomic<bool> watching_ = false;
  Atomic<bool> watched_ = false;      // watch was called: another server's exchanges begin it again
  Atomic<bool> closing_ = false;      // the server has stopped
  Event due_;                         // a server has become unreachable
  Atomic<std::uint32_t> asking_ = 0;  // fibers that run
};

}  // namespace coir::http
