#pragma once

// WebSockets (RFC 6455). A server keeps thousands of them in a WebSocketHub, without a fiber for each, or has one fiber
// for one client: accept_websocket. A client connects by connect_websocket.
//
//   struct Chat {
//     void opened(coir::http::HubSocket& socket) { static_cast<void>(socket.subscribe("room")); }
//     void message(coir::http::HubSocket& socket, const coir::http::WebSocketMessage& message) {
//       socket.publish("room", message.bytes);
//     }
//   };
//
//   coir::http::WebSocketHub<Chat> chat({.max_sockets = 4000});
//   auto app = coir::http::routes(coir::http::get<"/chat">(chat));
//   int main() { return coir::http::serve({.listen = ":8080"}, app); }

#include <coir/config.h>

#if !COIR_STREAMS
#error "this build of coir has no WebSockets: configure it with -DCOIR_STREAMS=ON"
#endif

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
struct MetricsPart;

// WebSocketHubOptions sets what a WebSocket hub reserves and how long it waits for its sockets.
struct WebSocketHubOptions {
  std::size_t max_sockets = 1024;        // a further socket is answered 503
  std::size_t max_subscriptions = 1024;  // of all sockets together
  // The subprotocols that the program speaks, and the pages that may connect besides the server's own: see
  // WebSocketOffer. Both outlive the hub.
  std::span<const std::string_view> subprotocols = {};
  std::span<const std::string_view> origins = {};
  // The limits and times of each socket. A max_message over 256 KiB counts as 256 KiB: the hub holds whole messages.
  WebSocketOptions socket = {.max_message = 64 * 1024, .max_frame = 64 * 1024};
  // How many bytes may wait for a slow client besides those that the kernel holds for it. At most 256 KiB.
  std::size_t max_unsent = 64 * 1024;
};

// Published counts the sockets that a message was published to.
struct Published {
  std::size_t sent = 0;     // the kernel has the message, or a buffer of the socket
  std::size_t dropped = 0;  // the client was too slow, and its connection was closed
};

// HubSocket is one WebSocket of a hub. The program gets it in its calls and must not store it: it is invalid once `closed`
// returns. Names of topics have at most 64 bytes.
class HubSocket {
 public:
  HubSocket(const HubSocket&) = delete;
  HubSocket& operator=(const HubSocket&) = delete;

  // send_text and send_binary send a message without waiting: the kernel takes it, or it waits for the client in a
  // buffer. Messages that a call of the program sends to its own socket go out together when the call returns.
  // Errors: invalid (text that is not UTF-8), closed, limit (more than max_unsent would wait), no_memory.
  [[nodiscard]] std::expected<void, Error> send_text(std::string_view text) noexcept;
  [[nodiscard]] std::expected<void, Error> send_binary(std::string_view bytes) noexcept;

  // close sends a close frame. `closed` is called when the client has answered, or after close_timeout.
  // Errors: as send_text; limit also for a reason over 123 bytes.
  [[nodiscard]] std::expected<void, Error> close(CloseCode code = CloseCode::normal,
                                                 std::string_view reason = {}) noexcept;

  // subscribe has the socket receive what is published to `topic` from now on. Idempotent. It costs 20 bytes, and the
  // first subscription to a topic 128 more. Errors: closed, limit (max_subscriptions, or the name is too long), no_memory.
  [[nodiscard]] std::expected<void, Error> subscribe(std::string_view topic) noexcept;
  // unsubscribe ends a subscription. A socket that closes is unsubscribed from all topics.
  void unsubscribe(std::string_view topic) noexcept;

  // publish and publish_binary are those of the hub.
  Published publish(std::string_view topic, std::string_view text) noexcept;
  Published publish_binary(std::string_view topic, std::string_view bytes) noexcept;

 protected:
  HubSocket() noexcept = default;
  ~HubSocket() = default;
};

namespace detail {

// SocketHub is a WebSocketHub without the types of its program.
class SocketHub {
 public:
  struct Calls {
    void* program;
    void (*opened)(void* program, HubSocket& socket, void* state) noexcept;
    void (*message)(void* program, HubSocket& socket, void* state, const WebSocketMessage& message) noexcept;
    void (*closed)(void* program, HubSocket& socket, void* state, CloseCode code) noexcept;
    void (*destroy)(void* state) noexcept;
    std::size_t state_bytes;
  };

  SocketHub(const Calls& calls, const WebSocketHubOptions& options) noexcept;
  SocketHub(const SocketHub&) = delete;
  SocketHub& operator=(const SocketHub&) = delete;
  ~SocketHub();

  // begin checks the request and returns memory for the state of a socket; null: the request has been answered. The
  // caller constructs the state there, and finish answers.
  void* begin(Exchange& exchange) noexcept;
  void finish(Exchange& exchange, void* state) noexcept;

  Published publish(std::string_view topic, std::string_view payload, bool text) noexcept;
  std::size_t sockets() const noexcept;
  std::size_t subscribers(std::string_view topic) const noexcept;
  std::uint64_t dropped() const noexcept;

 private:
  SocketTable* const table_;  // null: there was no memory
};

MetricsPart metrics_part(SocketHub& hub) noexcept;

// StateOf is a program's State, or nothing.
template <class Program>
struct StateOf {
  struct Type {};
};
template <class Program>
  requires requires { typename Program::State; }
struct StateOf<Program> {
  using Type = typename Program::State;
};

}  // namespace detail

// WebSocketHub keeps WebSockets that cost no fiber and no buffer while no bytes move: a record of about 100 bytes besides
// the 136 bytes of the connection, and the state of the program. It calls the program with each message.
//
//   struct Chat {
//     struct State { std::uint32_t said = 0; };                  // of each socket; may be left out
//     void opened(HubSocket& socket, State&) { ... }             // may be left out
//     void message(HubSocket& socket, State& state, const WebSocketMessage& message) {
//       if (++state.said > 100) return static_cast<void>(socket.close(CloseCode::policy_violation));
//       socket.publish("room", message.bytes);
//     }
//     void closed(HubSocket&, State&, CloseCode) { ... }         // may be left out
//   };
//   WebSocketHub<Chat> chat({.max_sockets = 4000});
//
// The calls of one socket happen one after the other, on a fiber of the server with a stack of
// ServerOptions::handler_stack. The calls of different sockets happen at the same time if several workers run. A call may
// wait, except `closed`, which may run while memory is being freed or the server stops, on whatever fiber does that: it must
// neither wait nor send, nor need more than 2 KB of stack. Messages of others to a socket whose call waits are sent when the
// call returns, or 16 KiB have gathered: long work belongs to a fiber that the call starts. By TLS all of it gathers until
// then, and more than max_unsent disconnects.
//
// `opened` is called behind the answer to the handshake: another client may publish before the new one has subscribed there.
//
// The hub answers pings, sends pings, answers close frames, and enforces limits and times, by WebSocketHubOptions::socket.
// When the server stops, or the hub is destroyed, each socket is sent 1001. When the server needs room or memory is short,
// the sockets that have been silent for longest are closed. A client for which more than max_unsent bytes wait is
// disconnected when something is published to it.
//
// A hub serves one server at a time. Either may be destroyed first. The hub is destroyed on a fiber or after the server's
// run, and with no call of the hub in progress; its program is destroyed after its last call.
//
// All memory is reserved as address space at construction. account::connections is charged for each socket, subscription
// and topic; account::buffers for what waits to be sent and for messages that have arrived in part. It works without
// fibers too; then pings are sent only while the server's loop runs.
template <class Program>
class WebSocketHub {
 public:
  using State = typename detail::StateOf<Program>::Type;

  // The constructor makes the program from `arguments`. If no address space is left, requests are answered 503. Options
  // that are wrong end the process with a line.
  template <class... Arguments>
  explicit WebSocketHub(const WebSocketHubOptions& options = {}, Arguments&&... arguments) noexcept
      : program_(std::forward<Arguments>(arguments)...), hub_(calls(), options) {}

  // The call answers a request for a WebSocket; the handler returns after it. The answer is 101, or 400, 403 (a page that
  // may not connect), 405, 426 or 503. accept does the same and sets the state of the socket.
  void operator()(Exchange& exchange) noexcept { accept(exchange, State()); }
  void accept(Exchange& exchange, State state) noexcept {
    void* const memory = hub_.begin(exchange);
    if (memory != nullptr) hub_.finish(exchange, ::new (memory) State(std::move(state)));
  }

  // publish sends text to all subscribers of a topic, publish_binary bytes, without waiting for a client. Text that is not
  // UTF-8 is sent to no subscriber. Every subscriber receives the messages of a topic in the order of their publication. A
  // publish lets other fibers run from time to time; if another fiber publishes to the same topic meanwhile, it waits.
  // From a fiber; a cancelled fiber publishes too. Cost: one system call for each subscriber.
  Published publish(std::string_view topic, std::string_view text) noexcept { return hub_.publish(topic, text, true); }
  Published publish_binary(std::string_view topic, std::string_view bytes) noexcept {
    return hub_.publish(topic, bytes, false);
  }

  // Any thread: how many sockets are open, how many are subscribed to a topic, and how many were disconnected because
  // their clients were too slow.
  std::size_t sockets() const noexcept { return hub_.sockets(); }
  std::size_t subscribers(std::string_view topic) const noexcept { return hub_.subscribers(topic); }
  std::uint64_t dropped() const noexcept { return hub_.dropped(); }

  Program& program() noexcept { return program_; }

  // hub is for this library.
  detail::SocketHub& hub() noexcept { return hub_; }

 private:
  static Program& program(void* pointer) noexcept { return *static_cast<Program*>(pointer); }
  static State& state(void* pointer) noexcept { return *static_cast<State*>(pointer); }

  detail::SocketHub::Calls calls() noexcept {
    static_assert(alignof(State) <= 8, "a socket's state lies at a multiple of eight bytes");
    detail::SocketHub::Calls calls = {.program = &program_,
                                      .opened = nullptr,
                                      .message = nullptr,
                                      .closed = nullptr,
                                      .destroy = [](void* s) noexcept { state(s).~State(); },
                                      .state_bytes = std::is_empty_v<State> ? 0 : sizeof(State)};
    using Socket = HubSocket&;
    if constexpr (requires(Program& p, Socket socket, State& s) { p.opened(socket, s); }) {
      calls.opened = [](void* p, Socket socket, void* s) noexcept { program(p).opened(socket, state(s)); };
    } else if constexpr (requires(Program& p, Socket socket) { p.opened(socket); }) {
      calls.opened = [](void* p, Socket socket, void*) noexcept { program(p).opened(socket); };
    }
    using Message = const WebSocketMessage&;
    if constexpr (requires(Program& p, Socket socket, State& s, Message m) { p.message(socket, s, m); }) {
      calls.message = [](void* p, Socket socket, void* s, Message m) noexcept {
        program(p).message(socket, state(s), m);
      };
    } else {
      calls.message = [](void* p, Socket socket, void*, Message m) noexcept { program(p).message(socket, m); };
    }
    if constexpr (requires(Program& p, Socket socket, State& s, CloseCode code) { p.closed(socket, s, code); }) {
      calls.closed = [](void* p, Socket socket, void* s, CloseCode code) noexcept {
        program(p).closed(socket, state(s), code);
      };
    } else if constexpr (requires(Program& p, Socket socket, CloseCode code) { p.closed(socket, code); }) {
      calls.closed = [](void* p, Socket socket, void*, CloseCode code) noexcept { program(p).closed(socket, code); };
    }
    return calls;
  }

  Program program_;
  detail::SocketHub hub_;  // goes first, and calls the program
};

// metrics_part is for Metrics::add of coir/http/metrics.h.
template <class Program>
auto metrics_part(WebSocketHub<Program>& hub) noexcept {
  return metrics_part(hub.hub());
}

}  // namespace coir::http
