#pragma once

#include <coir/http/server.h>
#include <coir/pressure.h>

#include "http/connection/connection.h"
#include "http/connection/connection_records.h"
#include "http/connection/pressure_steps.h"
#include "http/serial/serving_loop.h"
#include "http/session/engine.h"

namespace coir::http {

// SerialEngine is the engine of a build without fibers: it serves one connection at a time, with one session. All
// others are records in its lists. This class accepts, keeps and closes them; its ServingLoop chooses whom to serve.
//
//   accept -> resting -> (readable) -> ready -> served -> resting ...
//
// Connections that are readable at the same time are served in the order in which they came to rest, one turn each: a
// turn ends when all that has arrived is answered.
class SerialEngine : public Engine {
 public:
  static SerialEngine* create(const ServerOptions& options) noexcept;
  static void destroy(SerialEngine* engine) noexcept;

  // These are Engine's functions of the same names.
  std::expected<std::size_t, Error> add(TcpListener&& listener, TlsContextSlot* tls, std::uint8_t mark) noexcept;
  void remove(std::size_t number) noexcept;
  void begin_stop() noexcept;
  bool stopped() noexcept { return stopping() && keepers.stop() && records_.taken() == 0; }
  std::expected<void, Error> stop() noexcept;
  ServerGauges gauges() noexcept;
  [[nodiscard]] bool rest(Connection& connection, std::int64_t since_ns) noexcept;
  void close(Connection& connection) noexcept;
  bool evict_idle() noexcept { return make_room(evictable_since()); }
  bool close_silent_handshake() noexcept;

  // accept_from accepts what waits at a listener, as far as there is room.
  void accept_from(std::size_t number) noexcept;
  // may_accept is false for a while after the kernel was short; accept_again is when it becomes true.
  bool may_accept() const noexcept { return accept_again_.passed(); }
  Deadline accept_again() const noexcept { return accept_again_; }

  // close_resting closes a connection that rests, and counts it.
  void close_resting(Connection& connection, Atomic<std::uint64_t>& counter) noexcept;
  std::size_t open_connections() const noexcept { return records_.taken(); }
  // listeners has the places up to the last open one; those that are closed have no descriptor. poll(2) takes no more
  // entries than the limit of descriptors.
  std::span<const TcpListener> listeners() const noexcept {
    std::size_t count = Server::kMaxListeners;
    while (count > 0 && !listeners_[count - 1].is_open()) --count;
    return {listeners_, count};
  }

  ConnectionList resting;
  ConnectionList ready;  // readable, and not served yet
  ServingLoop loop;

 private:
  SerialEngine(const ServerOptions& given, OwnSession* session, Connection* connections, pollfd* entries) noexcept;

  bool reserve_one(std::size_t number) noexcept;
  void shed_one(std::size_t number) noexcept;
  bool close_handshake(std::int64_t not_after_ns) noexcept;
  std::int64_t evictable_since() const noexcept;
  bool make_room(std::int64_t not_after_ns) noexcept;
  std::size_t close_longest_resting(std::size_t wanted) noexcept;

  ConnectionRecords records_;
  Deadline accept_again_ = Deadline::now();
  Relief resting_connections_{pressure::evict,
                              [](void* self, std::size_t wanted) noexcept {
                                return static_cast<SerialEngine*>(self)->close_longest_resting(wanted);
                              },
                              this};
  TcpListener listeners_[Server::kMaxListeners];
  TlsContextSlot* tls_[Server::kMaxListeners] = {};  // of each listener, or null
  std::uint8_t marks_[Server::kMaxListeners] = {};
};

}  // namespace coir::http
