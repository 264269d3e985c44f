#pragma once

#include <coir/error.h>
#include <coir/http/exchange.h>
#include <coir/http/websocket.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

namespace coir::http {

class SocketTable;
class Topic;

// RestingSocketsOptions is what a set of resting sockets reserves, and how patient it is.
struct RestingSocketsOptions {
  std::size_t max_sockets = 1024;        // one more is answered 503
  std::size_t max_subscriptions = 1024;  // of all sockets together
  // The subprotocols that the program speaks, and the pages that may connect besides the server's own: see
  // WebSocketOffer. Both outlive the sockets.
  std::span<const std::string_view> subprotocols = {};
  std::span<const std::string_view> origins = {};
  // A socket's limits and times. A max_message over 256 KiB counts as that: a message is held as a whole here.
  WebSocketOptions socket = {.max_message = 64 * 1024, .max_frame = 64 * 1024};
  // What may wait for a client that takes its messages slowly, beside what the kernel holds for it.
  std::size_t max_unsent = 64 * 1024;
};

// RestingSocket is one WebSocket that rests. The program gets it in its calls, and must not keep it: at the end of
// `closed` the memory is another's.
class RestingSocket {
 public:
  RestingSocket(const RestingSocket&) = delete;
  RestingSocket& operator=(const RestingSocket&) = delete;

  // send_text and send_binary send a message without waiting: the kernel takes it, or it waits for the client in a
  // buffer. Within a call of the program's, messages to the call's own socket go out together when the call returns.
  // Errors: invalid (text that is not UTF-8), closed, limit (more than max_unsent would wait), no_memory.
  [[nodiscard]] std::expected<void, Error> send_text(std::string_view text) noexcept;
  [[nodiscard]] std::expected<void, Error> send_binary(std::string_view bytes) noexcept;

  // close sends a close frame; `closed` follows when the client has answered, or close_timeout has passed.
  // Errors: as send_text; limit also for a reason over 123 bytes.
  [[nodiscard]] std::expected<void, Error> close(CloseCode code = CloseCode::normal,
                                                 std::string_view reason = {}) noexcept;

  // subscribe has the socket get what is published to `topic`, which is of these sockets alone. Idempotent: 24 bytes.
  // Errors: closed, limit (max_subscriptions), no_memory, invalid (the topic is of other sockets).
  [[nodiscard]] std::expected<void, Error> subscribe(Topic& topic) noexcept;
  // unsubscribe ends that. A socket that closes is unsubscribed everywhere.
  void unsubscribe(Topic& topic) noexcept;

 protected:
  RestingSocket() noexcept = default;
  ~RestingSocket() = default;
};

// RestingSocketsBase is what RestingSockets is without the program's types.
class RestingSocketsBase {
 public:
  RestingSocketsBase(RestingSocketsBase&& other) noexcept : table_(std::exchange(other.table_, nullptr)) {}
  RestingSocketsBase& operator=(RestingSocketsBase&&) = delete;
  // The server must have been stopped.
  ~RestingSocketsBase();

  // open is how many sockets there are; any thread. dropped, how many were closed because their clients were slow.
  std::size_t open() const noexcept;
  std::uint64_t dropped() const noexcept;

 protected:
  // Calls is the program without its types.
  struct Calls {
    void* program;
    void (*opened)(void* program, RestingSocket& socket, void* state) noexcept;
    void (*message)(void* program, RestingSocket& socket, void* state, const WebSocketMessage& message) noexcept;
    void (*closed)(void* program, RestingSocket& socket, void* state, CloseCode code) noexcept;
    void (*destroy)(void* state) noexcept;
    std::size_t state_bytes;
  };
  friend class SocketTable;

  explicit RestingSocketsBase(SocketTable* table) noexcept : table_(table) {}
  static std::expected<SocketTable*, Error> make(const Calls& calls, const RestingSocketsOptions& options) noexcept;
  // begin judges the request and finds memory; null: it has been answered. The caller makes the state there.
  void* begin(Exchange& exchange) noexcept;
  std::expected<void, Error> finish(Exchange& exchange, void* state) noexcept;

 private:
  SocketTable* table_;
};

// RestingSockets keeps WebSockets that cost no fiber and no buffer while nothing moves: a record of about 100 bytes,
// beside the connection's own of 128, and the program's state. When a message is there the program is called with it.
//
//   struct Chat {
//     struct State { std::uint32_t said = 0; };           // kept for each socket, of any size; none if empty
//     Topic everybody;
//     void opened(RestingSocket& socket, State&) { socket.subscribe(everybody); }
//     void message(RestingSocket&, State& state, const WebSocketMessage& message) {
//       ++state.said;
//       everybody.publish_text(message.bytes);
//     }
//     void closed(RestingSocket&, State&, CloseCode) {}
//   };
//
//   Chat chat;
//   auto sockets = RestingSockets<Chat>::create(chat, {.max_sockets = 4000});
//   void handler(Exchange& exchange) { sockets->accept(exchange); }
//
// `opened` and `closed` may be left out. The calls of one socket come one after the other, on a fiber of the server,
// with a stack of ServerOptions::handler_stack; those of different sockets come at the same time where several workers
// run. They may wait, but `closed`, which may also run where memory is being made room for: it neither waits nor sends.
//
// Pings and their answers, close frames, ceilings and silence are the socket's own business, by
// RestingSocketsOptions::socket. One timer pings all of them. When the server stops each is sent 1001; when it needs
// room, or memory is short, those that have been quiet for longest are closed.
//
// All memory is reserved by create as address space; account::connections is charged for each socket and subscription,
// account::buffers for what waits to be sent and for messages that have come halfway. Without fibers it works too;
// there pings are sent only when the server has something to do.
template <class Program>
class RestingSockets : public RestingSocketsBase {
 public:
  using State = typename Program::State;

  // create reserves memory for the sockets of one server, which the RestingSockets outlive, as does `program`.
  // Errors: no_memory, invalid (a limit is zero or too large).
  [[nodiscard]] static std::expected<RestingSockets, Error> create(Program& program,
                                                                   const RestingSocketsOptions& options = {}) noexcept {
    auto table = make(calls(program), options);
    if (!table) return std::unexpected(table.error());
    return RestingSockets(*table);
  }

  // accept answers a request for a WebSocket, from a handler that returns then: by 101, or by what the request
  // deserves: 400, 403 for a page that may not, 405, 426, 503. `state` becomes the socket's.
  // Errors: those of Exchange::begin_chunked, and busy (the sockets are of another server); a handler just returns.
  std::expected<void, Error> accept(Exchange& exchange, State state = State()) noexcept {
    void* const memory = begin(exchange);
    if (memory == nullptr) return {};
    return finish(exchange, ::new (memory) State(std::move(state)));
  }

 private:
  explicit RestingSockets(SocketTable* table) noexcept : RestingSocketsBase(table) {}

  static Program& program(void* pointer) noexcept { return *static_cast<Program*>(pointer); }
  static State& state(void* pointer) noexcept { return *static_cast<State*>(pointer); }

  static Calls calls(Program& of) noexcept {
    static_assert(alignof(State) <= 8, "a socket's state lies at a multiple of eight bytes");
    Calls calls = {.program = &of,
                   .opened = nullptr,
                   .message = nullptr,
                   .closed = nullptr,
                   .destroy = nullptr,
                   .state_bytes = std::is_empty_v<State> ? 0 : sizeof(State)};
    if constexpr (requires(Program& p, RestingSocket& socket, State& s) { p.opened(socket, s); }) {
      calls.opened = [](void* p, RestingSocket& socket, void* s) noexcept { program(p).opened(socket, state(s)); };
    }
    calls.message = [](void* p, RestingSocket& socket, void* s, const WebSocketMessage& message) noexcept {
      program(p).message(socket, state(s), message);
    };
    if constexpr (requires(Program& p, RestingSocket& socket, State& s, CloseCode code) {
                    p.closed(socket, s, code);
                  }) {
      calls.closed = [](void* p, RestingSocket& socket, void* s, CloseCode code) noexcept {
        program(p).closed(socket, state(s), code);
      };
    }
    calls.destroy = [](void* s) noexcept { static_cast<State*>(s)->~State(); };
    return calls;
  }
};

}  // namespace coir::http
