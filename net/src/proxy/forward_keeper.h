#pragma once

#include <coir/http/wire/chunked.h>
#include <coir/resting_wait.h>

#include <algorithm>

#include "base/buffer_pool.h"
#include "http/message/response_parser.h"
#include "http/session/keeper.h"
#include "proxy/answer_keeper.h"
#include "proxy/forwarder.h"
#include "proxy/relayed_content.h"
#include "proxy/upstreams/upstream.h"
#include "socket/slow_peer.h"

namespace coir::http {

struct Forwarding;

// ForwardPair is what is kept of a response or a tunnel that goes on without a fiber, beside its client's Connection:
// the upstream's side. Charged to account::streams. Its owner is its connection's; what the wakes of its waits touch is
// guarded by the keeper's lock.
struct ForwardPair {
  // A wait of the pair's beside the connection's own, which is for the client to send something or to hang up.
  struct Wait : RestingWait {
    ForwardPair* pair = nullptr;
    bool armed = false;  // guarded by the keeper's lock: from before it sleeps until its wake is over
    bool woken = false;  // guarded by the keeper's lock
  };
  enum class Side : std::uint8_t { client, upstream };
  // Taking is how a side takes what it is sent, while some of it is unsent. Bytes that the side sends itself do not count.
  struct Taking {
    std::int64_t since_ns = 0;  // when it took something, or `slow` was asked
    SlowPeer slow;
    bool took = true;  // it has taken something since the pair rested last
  };
  // Bytes that one side has sent and the other has not taken yet; where they lie stands in front of them.
  struct Part {
    std::uint32_t at, end;
  };
  static Part& part(const Buffer& buffer) noexcept { return *reinterpret_cast<Part*>(buffer.data()); }
  // Trailers that the client takes, of which some may have come; `drops` is ForwardRules::response_drops.
  struct Trailers {
    std::span<const std::string_view> drops;
    char text[2048];
  };
  std::span<char> kept_trailers() const noexcept {
    return trailers ? std::span(reinterpret_cast<Trailers*>(trailers.data())->text) : std::span<char>();
  }

  ForwardKeeper* keeper = nullptr;
  Connection* client = nullptr;  // null before begin
  UpstreamLease lease;
  Atomic<std::uint32_t>* streams = nullptr;  // ForwardRules::streams, counted once the pair is kept
  Wait from_upstream, to_upstream, to_client;
  Buffer unsent_to_client, unsent_to_upstream;
  Buffer trailers;                 // Trailers of a response whose client takes them, until they are sent
  RelayedContent content;          // of a response
  OwedFraming owed;                // to the client, of a response that is peeked at
  Taking takings[2];               // by Side
  std::uint32_t rest_idle_ms = 0;  // it is cut when nothing has moved for so long; 0: never
  std::uint32_t requests = 0;      // that the client's connection has served
  bool tunnel = false;
  bool peeks = false;           // what the client does not take is left in the upstream's socket
  bool client_full = false;     // it has not taken all that was peeked at
  bool writes_chunks = false;   // to the client
  bool reusable = false;        // the upstream's connection, once the response has ended
  bool upstream_ended = false;  // nothing more is to be read from it
  bool client_ended = false;    // of a tunnel: nothing more is to be read from it
  bool client_stays = false;    // the client's connection serves further requests behind the response
  bool client_keeps = false;    // it has not said that its request is the last
  bool client_news = false;     // something has been heard of the client's socket, but not read
  bool moved = false;           // some byte has, since the pair rested last
  bool is_content = false;      // a response with an end, for which an upstream has ForwardRules::idle
  bool news = false;            // a wait has ended; guarded by the keeper's lock
  bool dying = false;           // whoever ends its last wait frees it: set last (release); guarded by the keeper's lock

  // sleeps tells whether a wake of one of its waits is to come. With the keeper's lock.
  bool sleeps() const noexcept { return from_upstream.armed || to_upstream.armed || to_client.armed; }
  bool awaits_client() const noexcept { return client_full || unsent_to_client; }
  bool awaits(Side side) const noexcept { return side == Side::client ? awaits_client() : bool(unsent_to_upstream); }
  Stream& stream(Side side) const noexcept { return side == Side::client ? client->stream : lease.stream(); }
  Buffer& unsent(Side side) noexcept { return side == Side::client ? unsent_to_client : unsent_to_upstream; }
  Taking& taking(Side side) noexcept { return takings[static_cast<int>(side)]; }
  // note_taken: the side has taken something, or is sent something while nothing was unsent. Its time begins when the pair rests.
  void note_taken(Side side) noexcept { moved = taking(side).took = true; }
};

// ForwardKeeper is a Forwarder: what goes on without a fiber.
//
//   forward_keeper.cpp   how pairs begin and rest        pair_transfer.cpp   how bytes pass        pair_end.cpp   how they end
class ForwardKeeper final : public Keeper {
 public:
  static std::expected<ForwardKeeper*, Error> create() noexcept;
  static void destroy(ForwardKeeper* keeper) noexcept;

  // keep takes over what `forwarding` has begun, and returns the pair. `unsent` are the bytes that its client has not taken of
  // what was read. Null: it cannot, and nothing has changed.
  ForwardPair* keep(Forwarding& forwarding, std::span<const iovec> unsent = {}) noexcept;
  // make_id writes the hexadecimal digits of a number that no other request has.
  void make_id(std::span<char, 16> digits) noexcept;
  std::string_view pseudonym() const noexcept { return {pseudonym_, sizeof pseudonym_}; }

  // These are Keeper's.
  void begin(Connection& connection, std::string_view sent, KeptMemory memory) noexcept override;
  void serve(Connection& connection, KeptMemory memory) noexcept override;
  void farewell(Connection& connection) noexcept override;
  void dropped(std::uint64_t mark) noexcept override;
  bool outlives_stop(const Connection& connection) const noexcept override { return pair_of(connection).is_content; }
  bool stopped() noexcept override;
  bool look_around(std::int64_t now_ns) noexcept override;

  ForwardCounters counters;
  AnswerKeeper answers{*this};

 private:
  using Side = ForwardPair::Side;
  // The next step of a pair that can do nothing more at once.
  enum class Next : std::uint8_t { rest, again, end, cut };

  ForwardKeeper() noexcept;

  // shorter is the shorter of two times, of which 0 is none.
  static std::int64_t shorter(std::int64_t one, std::int64_t other) noexcept {
    return one == 0 || other == 0 ? one + other : std::min(one, other);
  }
  static ForwardPair& pair_of(const Connection& connection) noexcept {
    return *reinterpret_cast<ForwardPair*>(connection.mark);
  }

  // forward_keeper.cpp
  void go_on(ForwardPair& pair, KeptMemory memory) noexcept;
  void gather(ForwardPair& pair) noexcept;
  bool arm(ForwardPair& pair, ForwardPair::Wait& wait, Stream& stream, Direction direction) noexcept;
  bool rest_pair(ForwardPair& pair) noexcept;
  static void woken(RestingWait& resting) noexcept;
  static bool keep_trailers(ForwardPair& pair, const Forwarding& forwarding) noexcept;

  // pair_end.cpp
  void end(ForwardPair& pair, Next how) noexcept;
  void cut(ForwardPair& pair, ForwardFailure failure) noexcept;
  void disarm(ForwardPair& pair) noexcept;
  static bool hides_cut(const ForwardPair& pair) noexcept;
  bool may_be_stuck(ForwardPair& pair, Side side, std::int64_t now_ns) noexcept;
  bool is_stuck(ForwardPair& pair, Side side, std::int64_t now_ns) noexcept;
  void release(ForwardPair& pair) noexcept;
  void free_pair(ForwardPair& pair) noexcept;

  // pair_transfer.cpp
  Next pass_down(ForwardPair& pair, KeptMemory memory) noexcept;
  Next pass_peeked(ForwardPair& pair, std::span<char> place) noexcept;
  static Next peek(ForwardPair& pair, RelayedContent& seen, std::span<char> place, std::size_t& found) noexcept;
  Next pass_up(ForwardPair& pair, KeptMemory memory) noexcept;
  Next take_content(ForwardPair& pair, std::span<char> bytes) noexcept;
  Next end_of_upstream(ForwardPair& pair, Error error) noexcept;
  static Next flush(ForwardPair& pair, Side to) noexcept;
  static Next put(ForwardPair& pair, Side to, std::string_view bytes) noexcept;
  static Next put_trailers(ForwardPair& pair, std::span<char> place) noexcept;
  static bool store(Buffer& unsent, std::span<const iovec> parts) noexcept;

  Atomic<std::size_t> pairs_ = 0;
  Atomic<std::uint32_t> ids_ = 0;
  std::uint64_t first_id_ = 0;      // random
  Atomic<bool> any_limit_ = false;  // a pair has had one, or has waited for its client
  char pseudonym_[13];
};

}  // namespace coir::http
