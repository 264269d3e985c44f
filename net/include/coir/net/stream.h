#pragma once

// A connection with TLS or without.
//
//   Stream stream(std::move(tcp));
//   if (auto sent = stream.write("hello\n", deadline); !sent) return complain(sent.error());
//   while (auto size = stream.read(buffer, deadline)) show(std::string_view(buffer, *size));

#include <type_traits>

#include <coir/config.h>
#include <coir/tcp.h>
#include <coir/wait.h>

namespace coir {

class TlsContext;
class TlsTicket;
struct TlsPeer;

// kTls tells whether this build has TLS. Without it nothing of namespace tls below is called.
inline constexpr bool kTls = COIR_TLS;

namespace tls {
class Session;

// Stream calls these when there is a session. session.cpp has them. Those that wait keep the number of the connection
// below taken meanwhile.
std::expected<std::size_t, Error> read(Session& session, TcpStream& below, std::span<char> into,
                                       Deadline deadline) noexcept;
std::expected<std::size_t, Error> write_some(Session& session, TcpStream& below, std::span<const iovec> from,
                                             Deadline deadline) noexcept;
std::expected<std::size_t, Error> send_file(Session& session, TcpStream& below, int file, std::uint64_t offset,
                                            std::size_t count, Deadline deadline) noexcept;
bool drained(Session& session) noexcept;
bool midway(Session& session) noexcept;
bool has_told_fault(Session& session) noexcept;
void mark_ready(Session& session, Direction direction) noexcept;
void rest(Session& session) noexcept;
void shutdown_write(Session& session) noexcept;
void end(Session* session, bool in_good_order) noexcept;
Deadline handshake_deadline(const Session& session) noexcept;
const TlsPeer* client(const Session& session) noexcept;

// NoSession stands where a Stream keeps its session in a build without TLS: always null, and no bytes.
struct NoSession {
  constexpr NoSession(Session* = nullptr) noexcept {}
  constexpr operator Session*() const noexcept { return nullptr; }
};
using SessionPointer = std::conditional_t<kTls, Session*, NoSession>;

// A close takes the session from a stream in which a call of another thread is under way.
inline Session* session_in(Session* const& pointer) noexcept {
  return __atomic_load_n(&pointer, __ATOMIC_RELAXED);
}
inline Session* take_session(Session*& pointer) noexcept {
  return __atomic_exchange_n(&pointer, nullptr, __ATOMIC_RELAXED);
}
inline Session* session_in(NoSession) noexcept {
  return nullptr;
}
inline Session* take_session(NoSession) noexcept {
  return nullptr;
}
}  // namespace tls

// Stream is a connection, with TLS or without: a protocol is written once over it. Its calls are those of TcpStream,
// with the same deadlines and cancellation.
//
// Errors of all calls: those of TcpStream; with TLS also
//
//   truncated    the connection has ended without the peer's close_notify; a clean end is end_of_stream
//   alert, protocol, no_memory    describe tells more
//
// With TLS a write that has timed out, or was cancelled, may have encrypted bytes that it could not send: the next
// write, if there is one, begins with the bytes that were not counted as sent. After end_of_stream writing goes on.
//
// Cost over TcpStream: a comparison with null.
class Stream {
 public:
  Stream() noexcept = default;
  Stream(TcpStream&& tcp) noexcept : tcp_(std::move(tcp)) {}
  ~Stream() { close(); }

  Stream(Stream&& other) noexcept : tcp_(std::move(other.tcp_)), session_(std::exchange(other.session_, nullptr)) {}
  Stream& operator=(Stream&& other) noexcept {
    if (this != &other) {
      close();
      tcp_ = std::move(other.tcp_);
      session_ = std::exchange(other.session_, nullptr);
    }
    return *this;
  }
  bool secure() const noexcept { return session_ != nullptr; }

  // client is who the client is by its certificate, where the server's context asks for one and remembers clients
  // (TlsContext::Server::remember_clients); else null. It is the stream's.
  const TlsPeer* client() const noexcept {
    if constexpr (kTls) {
      if (session_ != nullptr) return tls::client(*session_);
    }
    return nullptr;
  }

  // begin_tls puts a session on top of a connection over which nothing has been said, as the server's side or, with the
  // server's name and maybe a ticket, the client's. Its handshake has to be over by `deadline`; until it is, nothing
  // else is read or written. TlsStream wraps these for callers that just wait. A build without TLS only declares
  // begin_tls to awaited. Errors: those of TlsStream::connect.
  [[nodiscard]] std::expected<void, Error> begin_tls(const TlsContext& context, const char* name, Deadline deadline,
                                                     const TlsTicket* ticket = nullptr) noexcept;
  // handshake waits until the handshake is over, or has failed. Errors: those of TlsStream::connect.
  [[nodiscard]] std::expected<void, Error> handshake() noexcept;
  // advance_handshake goes on without waiting for the peer, but for its turn to compute. True: the handshake is over.
  // False: call it again after the event that awaited names, and after mark_ready. Errors: those of TlsStream::connect.
  [[nodiscard]] std::expected<bool, Error> advance_handshake() noexcept;
  Direction awaited() const noexcept;
  Deadline handshake_deadline() const noexcept {
    if constexpr (kTls) return tls::handshake_deadline(*session_);
    return Deadline::never();
  }
  void mark_ready(Direction direction) noexcept {
    if constexpr (kTls) tls::mark_ready(*session_, direction);
  }

  [[nodiscard]] std::expected<std::size_t, Error> read(std::span<char> into,
                                                       Deadline deadline = Deadline::never()) noexcept {
    if constexpr (kTls) {
      if (tls::Session* const session = tls::session_in(session_); session != nullptr) [[unlikely]]
        return tls::read(*session, tcp_, into, deadline);
    }
    return tcp_.read(into, deadline);
  }

  [[nodiscard]] std::expected<void, Error> write(std::string_view from, Deadline deadline = Deadline::never()) noexcept;

  [[nodiscard]] std::expected<std::size_t, Error> write_some(std::span<const iovec> from,
                                                             Deadline deadline = Deadline::never(),
                                                             bool more_follows = false) noexcept {
    if constexpr (kTls) {
      if (tls::Session* const session = tls::session_in(session_); session != nullptr) [[unlikely]]
        return tls::write_some(*session, tcp_, from, deadline);
    }
    return tcp_.write_some(from, deadline, more_follows);
  }

  [[nodiscard]] std::expected<std::size_t, Error> send_file(int file, std::uint64_t offset, std::size_t count,
                                                            Deadline deadline = Deadline::never()) noexcept {
    if constexpr (kTls) {
      if (tls::Session* const session = tls::session_in(session_); session != nullptr) [[unlikely]]
        return tls::send_file(*session, tcp_, file, offset, count, deadline);
    }
    return tcp_.send_file(file, offset, count, deadline);
  }

  // shutdown_write ends this side; with TLS by close_notify first, if it goes out without waiting. False: as TcpStream's.
  bool shutdown_write() noexcept {
    if constexpr (kTls) {
      if (tls::Session* const session = tls::session_in(session_); session != nullptr) [[unlikely]]
        tls::shutdown_write(*session);
    }
    return tcp_.shutdown_write();
  }

  // close ends the connection in good order, as far as that goes without waiting. abandon tells the peer that data is
  // missing: by TLS's lack of close_notify, and by a reset. A read and a write that another fiber or thread is in end with
  // `closed`; with TLS none may begin at the same moment.
  void close() noexcept {
    if constexpr (kTls) {
      if (tls::session_in(session_) != nullptr) [[unlikely]]
        end_session(true);
    }
    tcp_.close();
  }
  void abandon() noexcept;

  void mark_readable() noexcept {
    if constexpr (kTls) {
      if (tls::Session* const session = tls::session_in(session_); session != nullptr) [[unlikely]]
        tls::mark_ready(*session, Direction::readable);
    }
    tcp_.mark_readable();
  }
  void mark_writable() noexcept {
    if constexpr (kTls) {
      if (tls::Session* const session = tls::session_in(session_); session != nullptr) [[unlikely]]
        tls::mark_ready(*session, Direction::writable);
    }
    tcp_.mark_writable();
  }
  // drained tells that the last read took all there was, of what has been decrypted too.
  bool drained() const noexcept {
    if constexpr (kTls) {
      if (tls::Session* const session = tls::session_in(session_); session != nullptr) [[unlikely]]
        return tls::drained(*session);
    }
    return tcp_.drained();
  }

  // midway tells that a part of a record has arrived, or more records without data than one call takes: until the rest
  // is read the buffers cannot be given back.
  bool midway() noexcept {
    if constexpr (kTls) {
      if (tls::Session* const session = tls::session_in(session_); session != nullptr) [[unlikely]]
        return tls::midway(*session);
    }
    return false;
  }

  // has_told_fault tells that this side has ended the session by an alert, for the peer to read before the connection
  // is closed.
  bool has_told_fault() noexcept {
    if constexpr (kTls) {
      if (tls::Session* const session = tls::session_in(session_); session != nullptr) [[unlikely]]
        return tls::has_told_fault(*session);
    }
    return false;
  }

  // rest gives back the buffers that only reading and writing need; the next read or write takes them again.
  void rest() noexcept {
    if constexpr (kTls) {
      if (tls::Session* const session = tls::session_in(session_); session != nullptr) [[unlikely]]
        tls::rest(*session);
    }
  }

  bool is_open() const noexcept { return tcp_.is_open(); }
  int fd() const noexcept { return tcp_.fd(); }

  // tcp is the connection below, for callers that know there is no session.
  TcpStream& tcp() noexcept { return tcp_; }

 protected:
  void end_session(bool in_good_order) noexcept {
    if constexpr (kTls) tls::end(tls::take_session(session_), in_good_order);
  }

  TcpStream tcp_;
  [[no_unique_address]] tls::SessionPointer session_ = nullptr;
};

}  // namespace coir
