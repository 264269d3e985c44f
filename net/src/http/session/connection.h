#pragma once

#include <coir/atomic.h>
#include <coir/config.h>
#include <coir/detail/intrusive_list.h>
#include <coir/net/stream.h>

#include <cstddef>
#include <cstdint>

#if !COIR_NO_ASYNC
#include <coir/resting_wait.h>
#endif

namespace coir {
class TlsContextSlot;
}

namespace coir::http {

class Engine;

// Eviction: a wait for a slow client may be ended early to make room. The one who ends it shuts the socket's
// reading side down between `running` and `ended`; the fiber that reads waits for `ended` before it does anything else
// with the socket.
enum class Eviction : std::uint8_t { none, running, ended };

// Owes is what a client that is waited for keeps from being done. Of heads none has progressed.
enum class Owes : std::uint8_t { head, content };

// Asleep a connection waits on its own; without fibers the engine polls them all.
#if COIR_NO_ASYNC
struct Asleep {};
#else
using Asleep = RestingWait;
#endif

// Connection is all that is kept of a connection between two requests. It stands in one list at a time: idle (asleep on
// its socket) or securing (asleep, with its handshake before it or under way), waiting (for a session), reading (a
// fiber waits for the rest of a head, for content, or for the client to take some), or free.
struct Connection : Asleep {
  Engine* engine = nullptr;
  Connection* previous = nullptr;
  Connection* next = nullptr;
  Stream stream;
  TlsContextSlot* tls = nullptr;  // whose handshake is still before it
  std::int64_t since_ns = 0;      // when it entered its list, or its exchange began, on the coarse monotonic clock
  std::uint64_t moved = 0;        // bytes of that exchange, either way
  std::uint32_t requests = 0;     // answered so far
  std::uint8_t listener = 0;      // the number of the one that it came by
  Atomic<Eviction> eviction = Eviction::none;
  Owes owes = Owes::head;
  Direction awaits = Direction::readable;  // in which direction its client is waited for
  bool shakes_hands = false;               // its handshake is under way
  bool lingers = false;  // its handshake has failed, and the client is told why; guarded by the engine's lock
  bool taken = false;    // not free; guarded by the engine's lock
};
static_assert(sizeof(Connection) <= 200);

// progress is how much of its exchange a client has sent and taken, apart from what the kernel holds for it.
std::uint64_t progress(const Connection& connection) noexcept;

// A client owes one flight of a handshake at a time, for which it computes. Silent for so long it makes way for others.
inline constexpr std::int64_t kSilenceNs = 1'000'000'000;

// ConnectionList is in order of arrival. Its user holds the engine's lock.
using ConnectionList = detail::CountedList<Connection>;

}  // namespace coir::http
