#pragma once

#include <coir/atomic.h>
#include <coir/config.h>
#include <coir/detail/intrusive_list.h>
#include <coir/net/stream.h>
#include <coir/program.h>

#include <cstddef>
#include <cstdint>

#if !COIR_NO_ASYNC
#include <coir/resting_wait.h>
#endif

#include "socket/kernel.h"

namespace coir {
class TlsContextSlot;
}

namespace coir::http {

class Engine;
class HandlerWatch;
class Keeper;
struct HalfHead;
struct StreamLog;

// Eviction is the state of a wait for a slow client that may be ended early to make room. The fiber that ends the wait shuts
// the socket down between `running` and `ended`; the fiber that waits does nothing with the socket before `ended`.
enum class Eviction : std::uint8_t { none, running, ended };

// Owes is what a client is waited for: the rest of a head, content that it sends or takes, or, after the last answer,
// the end of its side. Bytes of a head are no progress. A wait for content_soon needs no end from outside: in
// a moment the exchange rests. A wait for lent_content has offered its place: only its memory may be needed.
enum class Owes : std::uint8_t { head, content, end, content_soon, lent_content };

// PeerState tells whether the engine remembers the client's address (Engine::peer_of). The handler's children may ask at once:
// one of them writes it.
enum class PeerState : std::uint8_t { unknown, written, known };

// Resting is what a connection needs to wait without a fiber. Without fibers the engine polls all of them.
#if COIR_NO_ASYNC
struct Resting {};
#else
using Resting = RestingWait;
#endif

// Connection is all that is kept of a connection between two requests. It stands in one list at a time: one of the
// engine's queues, its list of waits for clients, a keeper's lists, or the free records.
struct Connection : Resting {
  // A connection that is kept belongs to a keeper (keeper.h), which tells two things of it: where it has come to.
  union {
    Engine* engine = nullptr;
    Keeper* keeper;
  };
  Connection* previous = nullptr;
  union {
    Connection* next = nullptr;
    HandlerWatch* watch;  // while it stands in no list and its handler is watched over
  };
  Stream stream;
  union {
    TlsContextSlot* tls = nullptr;  // the context of its handshake, until that is over
    StreamLog* log;                 // where `logs`: its line of the access log, for its end
  };
  // When it entered its list, or its exchange began; a tick ahead of coarse_ns at most. While its client is waited for
  // content: when the waits of this exchange would have begun without a break.
  std::int64_t since_ns = 0;
  union {
    std::uint64_t transferred = 0;  // bytes of that exchange, both ways
    std::uint64_t mark;             // kept: the keeper's own
    HalfHead* half;                 // where `has_half_head`: it rests in the middle of a head
  };
  union {
    std::uint32_t requests = 0;  // answered so far
    std::uint32_t part;          // kept: the keeper's own
  };
  std::uint32_t client = 0;   // the ClientLimits' ticket
  std::uint8_t listener = 0;  // the mark of the listener that accepted it
  Atomic<Eviction> eviction = Eviction::none;
  // These are written by its owner alone, so that they may share a byte.
  Owes owes : 3 = Owes::head;
  Direction awaits : 3 = Direction::readable;  // the direction in which its client is waited for
  bool logs : 1 = false;                       // it is a stream's, whose line in the access log follows its end
  bool has_half_head : 1 = false;
  bool in_handshake = false;  // its handshake is under way
  // These two are guarded by the engine's lock, so that they may share a byte.
  bool lingers : 1 = false;  // its handshake has failed and the client may still read why
  bool taken : 1 = false;    // not free
  bool kept = false;         // by `keeper`; written while nobody else can see it
  Atomic<PeerState> peer = PeerState::unknown;
  bool rests = false;  // it stands in a list of its keeper's; guarded by the keeper's lock
};
static_assert(sizeof(void*) != 8 || sizeof(Connection) <= 96, "thousands rest at a time: see what shares its place");

// In a build with fibers the engine remembers its client's address in so many bytes, once that was asked for.
inline constexpr std::size_t kPeerBytes = kFibers ? sizeof(std::uint64_t) : 0;

// progress is how many bytes of its exchange a client has sent and taken. Bytes that the kernel still holds do not
// count.
std::uint64_t progress(const Connection& connection) noexcept;

// A client that owes the rest of a head when the server begins to stop has this long for it.
inline constexpr std::int64_t kHeadGraceAtStopNs = 1'000'000'000;

// A client that owes a flight of its handshake for this long may be evicted when other handshakes wait.
inline constexpr std::int64_t kHandshakeSilenceNs = 1'000'000'000;

// ConnectionList is in order of arrival. Its user holds the engine's lock.
using ConnectionList = coir::detail::CountedList<Connection>;

// has_arrived tells whether the client has sent something that nobody was told of. The stream is readable then.
inline bool has_arrived(Connection& connection) noexcept {
  if (!kernel::has_input(connection.stream.fd())) return false;
  connection.stream.mark_readable();
  return true;
}

}  // namespace coir::http
