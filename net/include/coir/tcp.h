#pragma once

// TCP and Unix stream sockets.
//
//   auto listener = TcpListener::listen(*Address::parse(":7000"));
//   if (!listener) return complain(listener.error());
//   Nursery clients{{.limit = 100}};                              // the hundred and first waits in the backlog
//   return accept_each(*listener, [&](TcpStream client) {
//     clients.start([client = std::move(client)]() mutable {
//       char buffer[512];
//       while (auto size = client.read(buffer)) {
//         if (!client.write({buffer, *size})) return;
//       }
//     });
//   });

#include <coir/deadline.h>
#include <coir/detail/used_descriptor.h>
#include <coir/error.h>
#include <coir/net/address.h>
#include <coir/sleep.h>
#include <sys/uio.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string_view>
#include <utility>

namespace coir {

// TcpStream is one end of a connection: TCP over IPv4 or IPv6, or a Unix stream socket. Move-only; the destructor
// closes.
//
// Called the same way from a fiber and from a plain thread: where a call has to wait it goes through coir::wait. One
// reader and one writer may use a stream at the same time. Nothing is allocated. SIGPIPE is never raised but by
// send_file, where the program must ignore it (coird does).
//
// A read shorter than its buffer has drained the socket, so the next read waits before it asks again: a request that
// arrives in one piece costs one system call, not two. The same holds for writes. A sender of TCP urgent data or of
// file descriptors defeats this for its own connection only: its reader sees the rest when more bytes or the end
// arrive.
//
// Errors of all calls that wait: those of coir::wait.
class TcpStream {
 public:
  TcpStream() noexcept = default;
  // Takes over `fd`, a connected, non-blocking, close-on-exec stream socket.
  explicit TcpStream(int fd) noexcept : socket_(fd) {}
  // No call may be in progress on either side.
  TcpStream(TcpStream&& other) noexcept = default;
  TcpStream& operator=(TcpStream&& other) noexcept = default;
  ~TcpStream() = default;

  // connect makes a connection. Errors: limit (no descriptor is left), not_found (no such Unix socket), unsupported
  // (the kernel lacks the family), system (ECONNREFUSED, EHOSTUNREACH ...).
  [[nodiscard]] static std::expected<TcpStream, Error> connect(const Address& to,
                                                               Deadline deadline = Deadline::never()) noexcept;

  // read waits until at least one byte is there and returns how many were put into `into`, which must not be empty.
  // With Deadline::now() it asks the kernel once: for what has come when a select tells that the socket is readable.
  // Errors: invalid (`into` is empty), end_of_stream (the peer has shut down its side), timed_out, cancelled, closed
  // (reset, given up by the kernel as the peer has vanished, or closed here), system.
  [[nodiscard]] std::expected<std::size_t, Error> read(std::span<char> into,
                                                       Deadline deadline = Deadline::never()) noexcept;

  // write sends all of `from`. On an error some of it may have been sent.
  // Errors: timed_out, cancelled, closed (the peer has reset or vanished, or this side is shut down), system.
  [[nodiscard]] std::expected<void, Error> write(std::string_view from, Deadline deadline = Deadline::never()) noexcept;

  // write_some waits until something can be sent and returns how many bytes were, at least one. For writers whose
  // deadline is renewed by progress. `more_follows` lets the kernel hold back a partial segment. Errors: as write.
  [[nodiscard]] std::expected<std::size_t, Error> write_some(std::span<const iovec> from,
                                                             Deadline deadline = Deadline::never(),
                                                             bool more_follows = false) noexcept;

  // writev sends all of `parts`, in order. The entries are used up: their lengths are 0 afterwards. Errors: as
  // write.
  [[nodiscard]] std::expected<void, Error> writev(std::span<iovec> parts,
                                                  Deadline deadline = Deadline::never()) noexcept;

  // send_file sends up to `count` bytes (> 0) of the regular file `file` from `offset` on and returns how many were
  // sent as soon as any were. Reads of the file may block the thread on the disk.
  // Errors: as write; end_of_stream (the file ends at or before `offset`).
  [[nodiscard]] std::expected<std::size_t, Error> send_file(int file, std::uint64_t offset, std::size_t count,
                                                            Deadline deadline = Deadline::never()) noexcept;

  // shutdown_write ends this side: the peer reads what was sent and then the end. Reading goes on. Idempotent. False: the
  // connection has failed, and nobody hears of it.
  bool shutdown_write() noexcept;

  // close ends the stream at once. A read or write under way, on any worker or thread, returns `closed`; the
  // descriptor's number stays taken until the last of them has left. Idempotent.
  void close() noexcept { socket_.close(); }

  // mark_readable and mark_writable say that readiness was learnt elsewhere (a RestingWait woke, or could not go to
  // sleep), so that the next read or write asks at once.
  void mark_readable() noexcept { drained_ = false; }
  void mark_writable() noexcept { filled_ = false; }
  // drained tells that the last read took all there was.
  bool drained() const noexcept { return drained_; }

  // Errors: closed (the stream is), system.
  [[nodiscard]] std::expected<Address, Error> local_address() const noexcept;
  [[nodiscard]] std::expected<Address, Error> peer_address() const noexcept;

  bool is_open() const noexcept { return socket_.is_open(); }
  int fd() const noexcept { return socket_.number(); }

  // use keeps the descriptor's number taken while the result lives, as a call of this class does: for a session on top.
  detail::UsedDescriptor::Use use() noexcept { return detail::UsedDescriptor::Use(socket_); }

 private:
  // The marks lie in the descriptor's last bytes: eight in all, for thousands of connections that rest.
  [[no_unique_address]] detail::UsedDescriptor socket_;
  bool drained_ = false;  // the last read took all there was
  bool filled_ = false;   // the last write left the socket's buffer full
};
static_assert(sizeof(TcpStream) == 8);

// TcpListener accepts connections on an address. Move-only; the destructor closes, and removes the path of a Unix
// socket.
class TcpListener {
 public:
  struct Options {
    int backlog = 511;     // connections the kernel holds until they are accepted; it may lower it (somaxconn)
    int unsent_bytes = 0;  // what the kernel may hold that is not sent yet, inherited; 0: as it likes, up to megabytes
    bool without_delay = true;    // TCP_NODELAY, inherited by what is accepted: whole answers are written at once
    bool before_address = false;  // bind an IP address that no interface has yet too; it accepts once one has it
  };

  TcpListener() noexcept = default;
  TcpListener(TcpListener&& other) noexcept = default;
  TcpListener& operator=(TcpListener&& other) noexcept;
  ~TcpListener() { close(); }

  // listen binds and listens. ":80" and "*:80" take both families on one socket, or IPv4 alone where the kernel has no
  // IPv6. The path of a Unix socket nobody listens on any more is taken over. Never waits.
  // Errors: unsupported (the kernel lacks the family), limit (no descriptor is left), not_found (no folder for the Unix
  // socket), no_memory, system (EADDRINUSE, EACCES ...).
  [[nodiscard]] static std::expected<TcpListener, Error> listen(const Address& at, Options options) noexcept;
  [[nodiscard]] static std::expected<TcpListener, Error> listen(const Address& at) noexcept {
    return listen(at, Options());
  }

  // accept waits for the next connection. A connection that failed before it was taken is skipped. Errors: those of
  // coir::wait, system; limit (EMFILE or ENFILE, out of descriptors: the connection stays in the backlog, and calling
  // again at once would spin).
  [[nodiscard]] std::expected<TcpStream, Error> accept(Deadline deadline = Deadline::never()) noexcept;

  // local_address is the bound address, with the port that the kernel chose.
  const Address& local_address() const noexcept { return address_; }

  // close ends it at once; an accept that waits returns `closed`. Idempotent.
  void close() noexcept;

  bool is_open() const noexcept { return socket_.is_open(); }
  int fd() const noexcept { return socket_.number(); }

 private:
  detail::UsedDescriptor socket_;
  Address address_;
};

// accept_each hands each connection of a listener to `body`, which spawns what serves it and returns.
//
// It goes on where accept fails: a process that is out of descriptors or of memory asks again after 50 ms, and the
// connection waits in the backlog. It returns when the listener is closed, and when the caller is cancelled. From a
// fiber or a plain thread; a thread, and a build without fibers, serves the client in `body` itself. Errors: cancelled,
// timed_out (of a scope), unsupported (on a worker's own stack).
template <std::invocable<TcpStream&&> F>
[[nodiscard]] std::expected<void, Error> accept_each(TcpListener& listener, F&& body) {
  for (;;) {
    auto accepted = listener.accept();
    if (accepted) {
      body(std::move(*accepted));
    } else if (accepted.error() == ErrorCode::closed) {
      return {};
    } else if (auto slept = sleep(std::chrono::milliseconds(50)); !slept) {
      return slept;  // what has ended accept's wait for good ends this one as well
    }
  }
}

// connect (connect.cpp) makes a connection to a host: its name is resolved (coir/net/address.h; an address needs no
// lookup), and of its addresses the first that accepts is taken, IPv6 and IPv4 in turn, the resolver's best first.
//
//   auto stream = coir::connect("time.example", 80, Deadline::after(5s));
//   if (!stream) return complain(describe(stream.error()));
//
// An address has a quarter of a second to answer before the next is tried beside it, and an address that fails makes
// way at once ("Happy Eyeballs", RFC 8305). Later connections are closed.
//
// From a fiber, a thread or a build without fibers; all of it ends within `deadline`. Errors: those of resolve and of
// wait_several; system, with ECONNREFUSED if any address refused, else with the first address's errno (EHOSTUNREACH,
// ENETUNREACH ...). Cost: a descriptor for each address under way, at most eight.
[[nodiscard]] std::expected<TcpStream, Error> connect(std::string_view host, std::uint16_t port,
                                                      Deadline deadline = Deadline::never()) noexcept;

// connect to one of these, as they were resolved. Errors: not_found (there are none); those of wait_several; invalid
// (an address cannot be connected to); system, as above.
[[nodiscard]] std::expected<TcpStream, Error> connect(const Addresses& to,
                                                      Deadline deadline = Deadline::never()) noexcept;

}  // namespace coir
