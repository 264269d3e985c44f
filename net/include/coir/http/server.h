#pragma once

// A server below `serve`: listeners, limits, start and stop are the program's.
//
//   auto server = Server::create({.handler = [](Exchange& exchange) { exchange.respond_status(204); }});
//   auto listener = TcpListener::listen(*Address::parse(":8080"));
//   if (!server || !listener) return complain("it cannot start");
//   if (auto added = server->add(std::move(*listener)); !added) return complain(added.error());
//   if (auto started = server->start(); !started) return complain(started.error());
//   ...
//   if (auto stopped = server->stop(Deadline::after(10s)); !stopped) return complain(stopped.error());

#include <coir/atomic.h>
#include <coir/callable.h>
#include <coir/deadline.h>
#include <coir/detail/accounts.h>
#include <coir/error.h>
#include <coir/http/detail/duration_histogram.h>
#include <coir/http/exchange.h>
#include <coir/http/wire/request.h>
#include <coir/program.h>
#include <coir/stack_size.h>
#include <coir/tcp.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>

namespace coir {
class Heartbeat;
class TlsContextSlot;
}  // namespace coir

namespace coir::http {

class Engine;

// Handler answers one request: see Exchange. It is called from several fibers, workers or threads at once.
using Handler = Callable<void(Exchange& exchange)>;

// Mode is how requests are served. The handlers are the same, and between two requests a connection is a record.
enum class Mode : std::uint8_t {
  fibers,   // a fiber for each request; in a build with fibers
  threads,  // a thread for each request, which it may block: ServerOptions::max_active of them; with several workers
  serial,   // one request at a time, from its head to its answer
};

// Measured on the emulated board (Linux 6.1, riscv64): 3.6 to 4.0 KB of free memory go with each established TCP
// connection.
inline constexpr std::size_t kKernelBytesPerConnection = 4096;

// ServerOptions is what a server reserves and how patient it is.
struct ServerOptions {
  Handler handler = {};
  // Answers an error with its status, at once and without waiting, where the server would answer with the status' own
  // words: Exchange::answer_errors_by says when; also a request whose head cannot be understood, request() being empty
  // then. on_error of coir/http/routes.h sets it.
  Exchange::ErrorLook on_error = {};
  // Called when SIGHUP comes, where serve_until waits for it. From the waiting fiber.
  Callable<void()> on_hangup = {};
  // Called once, when a signal ends serve_until and nothing has been closed yet: the place to have others told that the
  // server goes. It must not wait. From the waiting fiber.
  Callable<void()> on_stop = {};
  // Reported to at least once a second (coir/heartbeat.h) while Mode::fibers serves; null: nothing is.
  Heartbeat* heartbeat = nullptr;

  // Connections held at once, idle ones included: 136 bytes each. One more takes the place of the one that has
  // been idle for longest, if that is longer than evict_after; if there is none it is answered 503. A stream that stays
  // open (of an EventHub, a WebSocketHub or a tunnel) counts, and is not closed for a newcomer: if memory is short, the
  // streams that have been silent for longest are closed.
  std::size_t max_connections = 1024;
  std::chrono::milliseconds evict_after{10'000};
  // An estimate of the memory that the kernel holds for an idle connection: the ledger is charged with it.
  std::size_t kernel_bytes_per_connection = kKernelBytesPerConnection;
  // Requests being served at once: each has a fiber and 28 KB of buffers, touched as far as they are used. More wait in
  // order, for header_timeout at most. Without fibers there is one at a time; a server for more is refused as
  // unsupported.
  std::size_t max_active = kFibers ? 256 : 1;
  // The stack of the fiber that runs the handler, in bytes: 8, 16, 32 or 64 KB; http/exchange.h tells what a handler
  // may call on it. A connection between requests has none. Without fibers the program's own stack is used.
  std::size_t handler_stack = 16_KiB;
  // TLS handshakes under way at once: each takes 38 KB, with record buffers, and while it computes one of the active.
  // More wait in order; if one's client is silent for a second meanwhile, its handshake ends.
  std::size_t max_handshakes = 256;
  std::uint32_t max_requests_per_connection = 0;  // 0: no limit
  // Connections at once, and requests a second, of one client address, IPv6 by /64; 0: no limit. One more is answered
  // 429 with Retry-After. A client that was silent may make one second's requests at once, up to a million. The
  // addresses take 56 bytes for each of max_connections. A proxy in front of the server counts as one client.
  std::uint32_t max_connections_per_client = 0;
  std::uint32_t max_requests_per_client = 0;

  Limits limits = {};

  // Names by which clients may call this machine besides its own: its host name, that with ".local", localhost, its
  // addresses, and the names in certificates of its listeners. "*" is any. A request that may change something, by any
  // method but GET, HEAD and OPTIONS, or that asks for a WebSocket is answered 421 if its Host is none of these, before
  // the handler: it may come from a page whose own name was changed to lead here, with what a browser of this network
  // may do (DNS rebinding). By a Unix socket every name may be used.
  std::span<const std::string_view> allow_hosts = {};

  std::chrono::milliseconds idle_timeout{60'000};       // between requests; 0: never
  std::chrono::milliseconds handshake_timeout{10'000};  // of TLS, from a connection's beginning
  std::chrono::milliseconds header_timeout{10'000};     // from a request's first byte to the end of its head
  std::chrono::milliseconds body_timeout{30'000};       // without the client sending anything of a request's content
  // The least rate of a request's content, in bytes a second, once it has taken longer than body_timeout: content that
  // drips ends the request, and an upload may take as long as its line needs. 0: any rate.
  std::uint32_t body_rate = 500;
  std::chrono::milliseconds write_timeout{30'000};  // without the client taking anything
  std::chrono::milliseconds linger_timeout{2'000};  // after an error was answered, for the client to read it

  bool access_log = false;  // one line for each request on standard error, by log_line: dropped when nobody reads
};

// answered_by has a server answer by a value, which outlives the server: a table of coir/http/routes.h, whose on_error
// decides how errors look, or any Handler.
template <class Answer>
ServerOptions answered_by(Answer& answer, ServerOptions options = {}) noexcept {
  options.handler = answer;
  if constexpr (requires { answer.error_look(); }) options.on_error = answer.error_look();
  return options;
}

// ServerCounters may be read from any thread at any time.
struct ServerCounters {
  Atomic<std::uint64_t> accepted = 0;             // connections
  Atomic<std::uint64_t> refused = 0;              // connections answered 503 for want of room
  Atomic<std::uint64_t> limited_connections = 0;  // answered 429: one client had too many
  Atomic<std::uint64_t> limited_requests = 0;     // answered 429: one client made too many
  Atomic<std::uint64_t> evicted = 0;              // idle connections closed to make room
  Atomic<std::uint64_t> evicted_slow = 0;         // exchanges of slow clients cut off for others
  Atomic<std::uint64_t> expired = 0;              // idle connections closed by the timeout
  Atomic<std::uint64_t> stopped_idle = 0;         // idle connections closed by begin_stop
  Atomic<std::uint64_t> accept_pauses = 0;        // times that the kernel was out of descriptors or memory
  Atomic<std::uint64_t> responses[5] = {};        // by class of status, 1xx to 5xx
  Atomic<std::uint64_t> bytes_received = 0;
  Atomic<std::uint64_t> bytes_sent = 0;
  DurationHistogram durations;  // of requests, from the end of the head to the end of the answer
};

// ServerGauges is a snapshot of what a server holds.
struct ServerGauges {
  std::size_t open;     // connections
  std::size_t idle;     // of these, without stack and buffer
  std::size_t active;   // being served
  std::size_t waiting;  // that want to be served when max_active allows
  std::size_t kept;     // streams that stay open behind their answers, resting or being served
};

// Server accepts connections and has a handler answer their requests, by HTTP/1.1.
//
// All memory is reserved by create, as address space; the ledger is charged as it comes into use: account::connections
// for each connection, account::http for buffers, account::stacks for fibers. When a charge does not fit, memory is won
// in the steps of Pressure: caches are given back, then the connections that have been idle for longest are closed,
// then new ones are answered 503, and where MemoryWatch finds the machine itself in danger nothing is accepted.
// Requests in progress end as they would. Between requests a connection is a record of 136 bytes: it owns no
// fiber, no stack and no buffer. If more than one worker runs, handlers run in parallel.
class Server {
 public:
  static constexpr std::size_t kMaxListeners = 8;

  // create reserves what `options` allows for. In Mode::threads each of max_active threads has 256 KB of stack and
  // handler_stack besides, resident as far as they are used; in Mode::serial max_active is 1. Errors: no_memory, invalid
  // (no handler, or a limit that is zero or too large, more than a million requests of a client and more than 4,096
  // threads among them, or a handler_stack of more than 64 KB), unsupported (this build has not this mode; max_active
  // over 1 in a build without fibers).
  [[nodiscard]] static std::expected<Server, Error> create(const ServerOptions& options,
                                                           Mode mode = kFibers ? Mode::fibers : Mode::serial) noexcept;

  Server(Server&& other) noexcept : engine_(std::exchange(other.engine_, nullptr)) {}
  Server& operator=(Server&&) = delete;
  // The server must be stopped, or never started, or serve_until must have returned, or its run have ended: while a
  // handler runs this ends the process with a line.
  ~Server();

  // add hands over a listener, before start or while the server serves, and returns the number by which remove knows it.
  // With `tls`, which outlives the server, its connections begin with a handshake by the context in that slot. `mark` is
  // what Exchange::listener returns for its requests. One call of add or remove at a time; from a fiber once the server
  // serves. Errors: limit (kMaxListeners), unsupported (this build has no TLS), closed (the server stops), no_memory.
  std::expected<std::size_t, Error> add(TcpListener&& listener, TlsContextSlot* tls = nullptr,
                                        std::uint8_t mark = 0) noexcept;

  // remove closes a listener: its address refuses connections once remove has returned. Connections that it has accepted
  // stay open. It waits for the listener's fiber to end.
  void remove(std::size_t number) noexcept;

  // start spawns the accepting fibers, and starts the threads of Mode::threads; from a fiber. Errors: those of spawn,
  // no_memory, limit (a thread cannot be started). In a build without fibers
  // nothing is served before serve_until.
  [[nodiscard]] std::expected<void, Error> start() noexcept;

  // begin_stop stops accepting, closes idle connections and lets the requests in progress end, with "Connection:
  // close". A handler's waits for other things than its client are cancelled, as http/exchange.h says. A
  // client that owes the rest of a head has a second for it. Returns at once.
  void begin_stop() noexcept;

  // stopped tells whether nothing is left; it also closes what has become idle since begin_stop.
  bool stopped() noexcept;

  // stop is begin_stop and then waits until all has ended, handlers too whose connections are closed. From none of its
  // handlers. Error: timed_out: what is left is cut off when the runtime
  // is shut down, and until the run has ended uses the server and its context: both have to outlive the run.
  [[nodiscard]] std::expected<void, Error> stop(Deadline deadline) noexcept;

  // serve_until serves, once started, until one of `signals` is sent to the process, and then drains: as begin_stop,
  // for at most `drain_timeout`. (SIGHUP, where it is among them, just calls ServerOptions::on_hangup.) A second
  // signal, or the timeout, cuts off what is left: it shuts the runtime down, so that every wait ends with `cancelled`,
  // and waits until the handlers have ended. The server and its context may then be destroyed. Returns how many
  // connections were cut off. From a fiber; in a build without fibers from the program's thread, where it is the one call
  // that serves.
  std::size_t serve_until(std::initializer_list<int> signals, std::chrono::milliseconds drain_timeout) noexcept;

  // connection_bytes is what the ledger is charged for a connection; request_bytes, for the buffers of a request being
  // served, whose fiber's stack comes on top.
  static std::size_t connection_bytes(const ServerOptions& options) noexcept;
  static std::size_t request_bytes() noexcept;

  const ServerCounters& counters() const noexcept;
  ServerGauges gauges() const noexcept;
  const ServerOptions& options() const noexcept;

 private:
  explicit Server(Engine* engine) noexcept : engine_(engine) {}

  Engine* engine_;
};

}  // namespace coir::http
