#pragma once

#include <coir/config.h>
#include <coir/http/server.h>

#if !COIR_NO_ASYNC
#include <coir/cancellation.h>
#endif

#include <coir/detail/chrono.h>
#include <algorithm>

#include "http/connection/client_limits.h"
#include "http/connection/connection.h"
#include "http/connection/handler_watch.h"
#include "http/session/keepers.h"

namespace coir::http {

struct ActivePlace;
struct Session;

class Engine;

// kServerStops is the reason by which the server's stop ends waits.
inline constexpr const char* kServerStops = "the server stops";

// Engine is the contract between a Server, its sessions and what runs them. http/concurrent/fiber_engine.cpp implements it,
// and in a build without fibers http/serial/serial_contract.cpp. A build holds one of the two, so that nothing is
// virtual.
class Engine {
 public:
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // These are Server's functions of the same names.
  static Engine* create(const ServerOptions& options, Mode mode) noexcept;
  static void destroy(Engine* engine) noexcept;
  std::expected<std::size_t, Error> add(TcpListener&& listener, TlsContextSlot* tls, std::uint8_t mark) noexcept;
  void remove(std::size_t number) noexcept;
  std::expected<void, Error> start() noexcept;
  void begin_stop() noexcept;
  bool stopped() noexcept;
  std::expected<void, Error> stop(Deadline deadline) noexcept;
  std::size_t serve_until(std::initializer_list<int> signals, std::chrono::milliseconds drain_timeout) noexcept;
  ServerGauges gauges() noexcept;
  // at_work tells whether a handler runs, or anything else of the server's.
  bool at_work() noexcept;

  // take_context notes the context of a listener.
  void take_context(TlsContextSlot* tls) noexcept {
    for (TlsContextSlot*& each : contexts) {
      if (each == nullptr || each == tls) {
        each = tls;
        return;
      }
    }
  }

  // The rest is for sessions.

  // rest puts a connection to rest until its client sends something; it has been idle since `since_ns`. True: the
  // connection is no longer the session's. False: something has arrived already, and the session goes on.
  [[nodiscard]] bool rest(Connection& connection, std::int64_t since_ns) noexcept;
  // rest_with_head does the same for a connection whose client owes the rest of a head, of which `head` has come
  // (HalfHead). False: something has arrived already; or there is no memory, or the server stops, and the session waits
  // for the rest itself.
  [[nodiscard]] bool rest_with_head(Connection& connection, std::string_view head) noexcept;
  // peer_of is Exchange::peer_address. In builds with fibers the kernel is asked once for the IPv4 address of a connection.
  std::expected<Address, Error> peer_of(Connection& connection) noexcept;
  // close ends a connection that stands in no list.
  void close(Connection& connection) noexcept;
  // next_or_release returns the next connection that waits for a session, or takes the session back and returns null.
  Connection* next_or_release(Session& session) noexcept;

  // release takes back the session of a fiber that goes on without it. In builds with fibers.
  void release(Session& session) noexcept;

  // offer lets others have a handler's place once its exchange has waited for a while, with its buffers unless it keeps
  // them; a further offer changes nothing but that. It does not wait. lend gives both away at
  // once; it is false where no place is ever given away. reclaim has the place be the handler's again, and waits for
  // one if others have it. In builds with fibers.
  void offer(ActivePlace& place, bool keeps_buffers) noexcept;
  bool lend(ActivePlace& place) noexcept;
  void reclaim(ActivePlace& place) noexcept;

  // serve_soon has a session serve a connection that is kept and stands in no list.
  void serve_soon(Connection& connection) noexcept;
  // close_waiting closes the connections of a keeper that wait for a session. In builds without fibers.
  void close_waiting(Keeper& keeper) noexcept;

  // end_handshake notes that a handshake is over, with success or without. It does nothing where none was under way.
  void end_handshake(Connection& connection) noexcept;
  // may_linger tells whether a connection whose handshake has failed may stay until its client has read why.
  bool may_linger(Connection& connection) noexcept;
  // close_silent_handshake closes a connection whose client has owed a flight for kHandshakeSilenceNs. False: there is
  // none.
  bool close_silent_handshake() noexcept;
  // evict_idle closes the connection that may be evicted first. False: there is none.
  bool evict_idle() noexcept;

  // begin_exchange starts the clock by which the progress of an exchange, or of its head, is measured.
  void begin_exchange(Connection& connection) noexcept;
  // begin_waiting and end_waiting surround each wait for a client. When others want the session, or its memory where its
  // place is lent, the engine may end the wait early: it shuts the stream down, its reading side or to end a write both,
  // and end_waiting returns false. That happens to a head 100 ms after its beginning, and to the slowest transfer of
  // content after waits of 2 s. Every head is ended kHeadGraceAtStopNs after the server has begun to stop.
  void begin_waiting(Connection& connection, Direction direction, Owes owes, Deadline deadline) noexcept;
  bool end_waiting(Connection& connection) noexcept;

  // yield_turn lets others be served for a moment. False: it cannot, and the connection's next answer has to be its
  // last.
  bool yield_turn() noexcept;

  bool stopping() const noexcept { return stopping_.load(std::memory_order_relaxed); }

  // look_interval is how often the times of connections at rest are looked at, in builds with fibers.
  std::chrono::nanoseconds look_interval() const noexcept {
    using namespace std::chrono_literals;
    const auto least = std::min({options.idle_timeout, options.handshake_timeout, options.header_timeout});
    return std::clamp<std::chrono::nanoseconds>(least / 4, 10ms, 1s);
  }

  const ServerOptions options;
  // False: a handler that waits keeps its place, because it has a thread, or because one request is served at a time.
  const bool lends_places;
  // The contexts of its listeners for TLS, of which some may be null: by the names in their certificates it is called.
  TlsContextSlot* contexts[Server::kMaxListeners] = {};
  ServerCounters counters;
  ClientLimits clients;
  Keepers keepers{*this};
#if !COIR_NO_ASYNC
  // stops is cancelled with kServerStops when the server begins to stop. It ends the waits of handlers (HandlerWatch),
  // and of event streams and WebSockets on handlers' own fibers.
  CancellationSource stops;
#endif

 protected:
  Engine(const ServerOptions& given, bool lends) noexcept : options(given), lends_places(lends) {}
  ~Engine() = default;

  // connection_bytes is what the ledger is charged for one connection.
  std::size_t connection_bytes() const noexcept { return Server::connection_bytes(options); }

  Atomic<bool> stopping_ = false;
};

}  // namespace coir::http
