#pragma once

// A WebSocket for one client, on a fiber; thousands of them are a WebSocketHub's (coir/websocket.h).
//
//   void echo(Exchange& exchange) {
//     auto socket = accept_websocket(exchange);
//     if (!socket) return;                                  // it has been answered
//     while (auto message = socket->receive()) {
//       if (!socket->send_text(message->bytes)) return;
//     }
//   }

#include <coir/config.h>

#if !COIR_STREAMS
#error "this build of coir has no WebSockets: configure it with -DCOIR_STREAMS=ON"
#endif

#include <coir/deadline.h>
#include <coir/error.h>
#include <coir/http/exchange.h>
#include <coir/net/stream.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string_view>

#if COIR_CLIENT
#include <coir/http/client.h>
#endif

namespace coir::http {

// CloseCode says why a WebSocket was closed (RFC 6455, 7.4, and IANA's registry). Libraries and frameworks use 3000 to
// 3999, programs 4000 to 4999: CloseCode{4001}.
enum class CloseCode : std::uint16_t {
  normal = 1000,             // its purpose is fulfilled
  going_away = 1001,         // the server stops, or the page was left
  protocol_error = 1002,     // the peer does not keep to the framing
  unsupported_data = 1003,   // a kind of message that is not taken, such as binary where text is wanted
  no_status = 1005,          // never sent: the peer's close frame named no code
  abnormal = 1006,           // never sent: the connection ended without a close frame
  invalid_payload = 1007,    // text that is not UTF-8
  policy_violation = 1008,   // a message that is not wanted, for a reason that has no code of its own
  too_big = 1009,            // a message over the receiver's ceiling
  missing_extension = 1010,  // sent by clients only: the server did not agree on an extension
  internal_error = 1011,     // the server cannot go on
  service_restart = 1012,    // come back after a while
  try_again_later = 1013,    // the server is full
  bad_gateway = 1014,        // the server behind the server failed
  tls_failure = 1015,        // never sent: the TLS handshake failed
};

// may_be_sent tells whether a close frame may hold `code`. A code that was received and may not is a protocol error.
constexpr bool may_be_sent(CloseCode code) noexcept {
  const auto number = static_cast<std::uint16_t>(code);
  return (number >= 1000 && number <= 1003) || (number >= 1007 && number <= 1014) || (number >= 3000 && number <= 4999);
}

// WebSocketOptions bounds what a peer may send, and how long this side is patient with it.
struct WebSocketOptions {
  std::uint64_t max_message = 1024 * 1024;         // all fragments together; over it: 1009. receive holds 1 MiB at most
  std::uint64_t max_frame = 1024 * 1024;           // one fragment; over it: 1009
  std::uint32_t max_fragments = 16'384;            // of one message; over it: 1008
  std::chrono::milliseconds ping_after{30'000};    // of silence the peer is sent a ping; 0: never
  std::chrono::milliseconds pong_timeout{10'000};  // silent for this long after a ping, the peer counts as gone
  std::chrono::milliseconds message_timeout{30'000};  // from a message's first byte to its last, for receive
  std::chrono::milliseconds write_timeout{30'000};    // without the peer taking anything
  // For the peer to answer a close frame, or to end once it was told of a failure. It may send 4 MiB meanwhile, which are
  // dropped.
  std::chrono::milliseconds close_timeout{2'000};
};

enum class WebSocketRole : std::uint8_t;

// WebSocketMessage is a whole message. Its bytes are valid until the next receive; text is UTF-8.
struct WebSocketMessage {
  bool text = false;
  std::string_view bytes;
};

// WebSocketPiece is a part of a message that need not be in memory as a whole. Text may be cut inside a character, but
// for the last piece. An empty message is one empty piece.
struct WebSocketPiece {
  bool text = false;
  bool begins = true;  // the first of its message
  bool ends = true;    // the last
  std::string_view bytes;
};

// WebSocketRequest is what a client asks a server for.
struct WebSocketRequest {
  std::string_view host;          // the value of the field Host: "board.local:8080"
  std::string_view target = "/";  // path and query
  std::span<const std::string_view> subprotocols = {};
  std::string_view fields = {};  // further header lines, each ended by CRLF, trusted: "Origin: https://a.test\r\n"
};

// WebSocket sends and receives messages over a connection (RFC 6455), as the server's side or the client's.
//
//   while (auto message = socket.receive()) {
//     if (auto sent = socket.send_text(message->bytes); !sent) return;
//   }
//
// One fiber may receive while others send: a message goes out whole, and those who send meanwhile wait. While receive
// waits, the socket holds neither input nor output buffer, by TLS neither a record buffer; buffers come from the pool
// of account::buffers as bytes arrive.
//
// receive also answers pings and the peer's close frame, and sends pings to a peer that has been silent for ping_after.
// So a socket that nobody receives from neither answers nor notices that its peer is gone.
//
// The outcome that ends a socket, which every later receive returns:
//
//   end_of_stream  the peer has closed, or answered this side's close: close_code and close_reason tell more
//   truncated      the connection has ended without a close frame, or the peer is silent: close_code is `abnormal`
//   protocol       the peer does not keep to the protocol, or sends text that is not UTF-8; it was told so
//   limit          the peer's message, frame or number of fragments is over a ceiling; it was told so
//   no_memory      a buffer was refused in the middle of a message; it was told 1013
//
// Works on fibers and on plain threads, and without fibers, where receive and send block the thread. Nothing is
// allocated but buffers. 640 bytes at most, whose moves want nobody inside.
class WebSocket {
 public:
  // connect makes the opening handshake as the client, over a connection to the server over which nothing has been
  // said. Errors: those of Stream's calls; protocol (the answer is none to a WebSocket's request: `sys` is its status,
  // 0 where it is malformed), limit (the answer's head is over 4 KiB; over 24 fields are `protocol`), invalid (a field
  // of `request` cannot be sent), no_memory.
  [[nodiscard]] static std::expected<WebSocket, Error> connect(Stream&& stream, const WebSocketRequest& request,
                                                               const WebSocketOptions& options = {},
                                                               Deadline deadline = Deadline::never()) noexcept;

  WebSocket(WebSocket&& other) noexcept;
  WebSocket& operator=(WebSocket&&) = delete;
  // The destructor closes the connection: without a close frame if none was sent.
  ~WebSocket();

  // receive waits for a whole message. A message in one frame that arrives in one piece is not copied.
  // A message that takes longer than message_timeout ends the socket with 1008, as `truncated`.
  // Errors: end_of_stream, truncated, protocol, limit, no_memory, as above (between two messages no_memory ends
  // nothing); invalid (a message has been begun by receive_piece); those of coir::wait, busy also where somebody else
  // receives: another call goes on where this one was.
  [[nodiscard]] std::expected<WebSocketMessage, Error> receive(Deadline deadline = Deadline::never()) noexcept;

  // receive_piece waits for the next piece of a message, however large the message is. The bytes are valid until the
  // next call. Errors: as receive.
  [[nodiscard]] std::expected<WebSocketPiece, Error> receive_piece(Deadline deadline = Deadline::never()) noexcept;

  // send_text and send_binary send a message, and wait while the peer's side is full.
  // Errors: closed (this side has closed, or the connection has failed), invalid (text that is not UTF-8), busy (a
  // message is being sent in pieces), no_memory (of a client's buffer for masking), those of Mutex::lock and of Stream.
  // After timed_out and cancelled nothing was sent; where a part was, all later calls return closed.
  [[nodiscard]] std::expected<void, Error> send_text(std::string_view text,
                                                     Deadline deadline = Deadline::never()) noexcept;
  [[nodiscard]] std::expected<void, Error> send_binary(std::string_view bytes,
                                                       Deadline deadline = Deadline::never()) noexcept;

  // send_piece sends a part of a message as a fragment of it; from the piece that begins the message to the one that
  // ends it, by one fiber. Errors: as send_text; invalid also for a piece that begins a message inside another, or
  // goes on with none.
  [[nodiscard]] std::expected<void, Error> send_piece(const WebSocketPiece& piece,
                                                      Deadline deadline = Deadline::never()) noexcept;

  // ping sends a ping of at most 125 bytes; the pong only shows that the peer is there. Errors: as send_text; limit.
  [[nodiscard]] std::expected<void, Error> ping(std::string_view payload = {},
                                                Deadline deadline = Deadline::never()) noexcept;

  // close sends a close frame and waits close_timeout for the peer's; messages that still arrive are dropped. When
  // another fiber is receiving, that one meets the answer, and close returns at once. Nothing can be sent afterwards.
  // Errors: invalid (a code that may not be sent, a reason that is not UTF-8), limit (a reason over 123 bytes),
  // truncated and timed_out (no answer came), and otherwise as receive and send_text.
  [[nodiscard]] std::expected<void, Error> close(CloseCode code = CloseCode::normal,
                                                 std::string_view reason = {}) noexcept;

  // close_code is the peer's, once it has closed; `no_status` before, and when its frame named none; `abnormal` where
  // the connection ended without one. close_reason is the peer's.
  CloseCode close_code() const noexcept;
  std::string_view close_reason() const noexcept;

  // subprotocol is the one that was agreed on, empty for none. The text belongs to the server's list, or the client's.
  std::string_view subprotocol() const noexcept;

  // stream is the connection below, for its addresses and its certificate.
  Stream& stream() noexcept;

  struct State;

 private:
  friend class WebSocketAccess;
  static constexpr std::size_t kStateBytes = 640;

  WebSocket(Stream&& stream, WebSocketRole role, const WebSocketOptions& options) noexcept;
  State& state() noexcept { return *reinterpret_cast<State*>(memory_); }
  const State& state() const noexcept { return *reinterpret_cast<const State*>(memory_); }

  alignas(8) char memory_[kStateBytes];
};

#if !COIR_NO_ASYNC

// WebSocketOffer is what a server offers to those who ask for a WebSocket. Everything it refers to must outlive the socket.
struct WebSocketOffer {
  // The subprotocols that the program speaks; of a client's list the first that is among them is agreed on.
  std::span<const std::string_view> subprotocols = {};
  // The pages that may connect besides those of the server's own origin, as a browser writes their origins
  // ("https://panel.example"), or "*" for all. A client that is no browser names none and may connect.
  std::span<const std::string_view> origins = {};
  WebSocketOptions options = {};
};

// accept_websocket (websocket_server.cpp) answers a request for a WebSocket, and the handler goes on with it:
//
//   void echo(Exchange& exchange) {
//     auto socket = accept_websocket(exchange);
//     if (!socket) return;                                  // it has been answered
//     while (auto message = socket->receive()) {
//       if (!socket->send_text(message->bytes)) return;
//     }
//   }
//
// The exchange is over then: nothing of it may be used behind the call, its request neither. The connection serves no
// other request, and its session serves others: while the handler waits for a message it costs its stack and the
// connection's record. When the server stops, receive tells the client 1001 and ends as if the client had closed; a
// handler that does not receive is waited for.
//
// Permessage-deflate is not agreed on. On a fiber.
// Errors: invalid (the request is none for a WebSocket; it has been answered by 400, 403, 405 or 426, or its answer has
// been begun before), limit (the head of the answer is too long), closed (the client is gone), no_memory (for what the
// client has sent already; it has been closed).
[[nodiscard]] std::expected<WebSocket, Error> accept_websocket(Exchange& exchange,
                                                               const WebSocketOffer& offer = {}) noexcept;

#endif

#if COIR_CLIENT

// WebSocketWish is what a client asks for beside the address.
struct WebSocketWish {
  std::span<const std::string_view> subprotocols = {};
  std::string_view fields = {};  // further header lines, each ended by CRLF, trusted: "Authorization: Bearer 1\r\n"
  WebSocketOptions options = {};
};

// connect_websocket (websocket_client.cpp) opens a WebSocket to an address of ws or wss, by `client`: with its trust,
// its pinned keys, the times of its phases, and its proxy. The proxy makes a tunnel (CONNECT) for ws, too.
// User information of the address ("wss://user:password@board.example/") becomes the Authorization line, unless
// wish.fields have such a line.
//
//   auto client = Client::create();
//   auto socket = connect_websocket(*client, "wss://board.example/live", {}, Deadline::after(5s));
//   while (auto message = socket->receive()) show(message->bytes);
//
// The socket's connection is its own: it counts neither against ClientOptions::max_connections nor in the pool, and may
// outlive the client. Called the same way from a fiber, a thread and in a build without fibers. Redirects are not
// followed. Errors: invalid (the address), unsupported (another scheme than ws and wss; wss in a build without TLS),
// limit; those of Client's requests but of the response, and those of WebSocket::connect.
[[nodiscard]] std::expected<WebSocket, Error> connect_websocket(Client& client, std::string_view url,
                                                                const WebSocketWish& wish = {},
                                                                Deadline deadline = Deadline::never()) noexcept;

#endif

}  // namespace coir::http
