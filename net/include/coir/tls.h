#pragma once

// TLS, as a server and as a client.
//
//   auto context = TlsContext::client({.authorities = text});                   // PEM
//   if (!context) return complain(describe(context.error()));
//   auto stream = connect_tls("board.example", 443, *context, Deadline::after(5s));
//   if (!stream) return complain(describe(stream.error()));
//   if (auto sent = stream->write("hello\n"); !sent) return complain(sent.error());

#include <coir/config.h>

#if !COIR_TLS
#error "this build of coir has no TLS: configure it with -DCOIR_TLS=ON"
#endif

#include <coir/deadline.h>
#include <coir/error.h>
#include <coir/ledger.h>
#include <coir/net/stream.h>
#include <coir/spinlock.h>

#if !COIR_NO_ASYNC
#include <coir/event.h>
#endif

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace coir {

namespace account {
extern Account tls;         // established sessions, record buffers in use, certificates
extern Account handshakes;  // sessions whose handshake is under way: its ceiling bounds them
}  // namespace account

namespace tls {
struct Config;
struct Ticket;
}  // namespace tls

// TlsCertificate is a chain, the peer's own certificate first, and the key of that one; each as PEM or DER.
struct TlsCertificate {
  std::string_view chain;
  std::string_view key;
};

// TlsKeyPin is SHA-256 over a certificate's public key as DER (SubjectPublicKeyInfo), as RFC 7469 and curl have it.
struct TlsKeyPin {
  unsigned char digest[32];
};

// TlsFault names the input of TlsContext::server or client that an error is about; of several certificates and keys,
// the index of the certificate.
struct TlsFault {
  enum class Input : unsigned char { none, certificate, key, authorities, protocols };  // none: memory is short
  Input input = Input::none;
  std::size_t certificate = 0;
};
TlsFault tls_fault(Error error) noexcept;

// TlsPeer is what a server remembers of a client's certificate that it has accepted.
struct TlsPeer {
  unsigned char fingerprint[32];  // SHA-256 of the certificate in DER
  char common_name[65];           // of its subject; empty where there is none that fits
};

// TlsContext is one side's policy, with its certificates, keys and trust. It is immutable and shared: copies are
// handles of the same, and it lives as long as the last of them and the last session made with it. Any thread.
class TlsContext {
 public:
  static constexpr std::size_t kMaxCertificates = 8;
  static constexpr std::size_t kMaxProtocols = 4;
  static constexpr std::size_t kMaxPins = 4;

  struct Server {
    // The first is shown to clients that ask for none of the names of the others, or name none. With an ECDSA and an RSA
    // certificate for one name, each client gets the one it supports.
    std::span<const TlsCertificate> certificates;
    // If present, a client has to show a certificate that one of these has signed. A text without a certificate, such as an
    // empty one, is refused.
    std::optional<std::string_view> client_authorities;
    // For ALPN, the best first: static strings. A client that offers others only is refused; one that offers none is
    // not.
    std::span<const char* const> protocols;
    bool tickets = true;  // clients may resume their sessions, for a day
    // Stream::client tells who the client is. 112 bytes a session, and no tickets: none of TLS 1.3 would tell.
    bool remember_clients = false;
  };
  struct Client {
    // Certificates of trusted authorities, as PEM. A server's name has to be among the subject alternative names of its
    // certificate: the subject does not count.
    std::string_view authorities;
    // Accepts any server under any name: no protection against an active attacker. With `pins` any that has one of the keys,
    // such as a device whose certificate is its own.
    bool accept_any_peer_without_verifying_it = false;
    const TlsCertificate* certificate = nullptr;  // to show when the server asks for one
    // If there are any, the key of the server's own certificate has to be one of these as well, else `untrusted`: an
    // authority that signs for the name cannot take the server's place.
    std::span<const TlsKeyPin> pins;
    std::span<const char* const> protocols;
    // Sessions may be resumed, by TlsStream::ticket. A session of TLS 1.3 then keeps 4 KB of its handshake, for the
    // tickets that are still to come.
    bool tickets = false;
  };

  // server and client copy their inputs. Expired certificates, keys of other certificates and unreadable inputs are
  // refused. Costs some milliseconds. Fiber or thread. Errors: invalid (describe says what is wrong, tls_fault with
  // which input), limit (too many certificates, protocols or pins), no_memory.
  [[nodiscard]] static std::expected<TlsContext, Error> server(const Server& options) noexcept;
  [[nodiscard]] static std::expected<TlsContext, Error> client(const Client& options) noexcept;

  TlsContext() noexcept = default;
  TlsContext(const TlsContext& other) noexcept;
  TlsContext(TlsContext&& other) noexcept : config_(std::exchange(other.config_, nullptr)) {}
  TlsContext& operator=(TlsContext other) noexcept {
    std::swap(config_, other.config_);
    return *this;
  }
  ~TlsContext();

  explicit operator bool() const noexcept { return config_ != nullptr; }
  // is_for (names.cpp) tells whether one of its own certificates is for a host name, by its alternative names, with a
  // wildcard for the first label. Addresses are no names.
  bool is_for(std::string_view host) const noexcept;
  tls::Config* config() const noexcept { return config_; }

 private:
  explicit TlsContext(tls::Config* config) noexcept : config_(config) {}

  tls::Config* config_ = nullptr;
};

// TlsContextSlot holds the context for new handshakes. replace changes it; existing sessions keep theirs. It may be empty at
// first, while a board has no random numbers for a key: then a server with fibers accepts nobody at its addresses until
// replace, and one without closes their connections. Any thread.
class TlsContextSlot {
 public:
  TlsContextSlot() noexcept = default;
  explicit TlsContextSlot(TlsContext context) noexcept { replace(std::move(context)); }

  TlsContext current() const noexcept {
    const Locked locked(lock_);
    return context_;
  }
  void replace(TlsContext context) noexcept {
    {
      const Locked locked(lock_);
      std::swap(context_, context);
    }
#if !COIR_NO_ASYNC
    filled_.set();
#endif
    // The old one goes here, outside the lock.
  }

#if !COIR_NO_ASYNC
  // await waits until there is a context. Fiber or thread. Errors: timed_out, cancelled, unsupported (core/README.md tells
  // where).
  [[nodiscard]] std::expected<void, Error> await(Deadline deadline = Deadline::never()) noexcept {
    return filled_.wait(deadline);
  }
#endif

 private:
  mutable Spinlock lock_;
  TlsContext context_;
#if !COIR_NO_ASYNC
  Event filled_;
#endif
};

// TlsTicket is a session ticket (RFC 5077, RFC 8446 4.6.1; by TLS 1.2 the session's number too, where the server gives
// that instead): with it a client takes up a session again, at a fraction of the cost of a handshake and without
// certificates.
//
//   auto first = connect_tls("board.example", 443, context, deadline);    // context: made with .tickets = true
//   ...                                                                   // read the answer
//   TlsTicket ticket = first->ticket().value_or(TlsTicket());
//   auto second = connect_tls("board.example", 443, context, ticket, deadline);    // second->resumed() if it was taken
//
// A ticket is bound to what was verified when it was given: the server's name, and the context, which it keeps alive.
// For another name or context, and past its lifetime, it counts as empty, and the handshake is a full one. If the
// server declines the ticket the handshake is a full one too, by the version of the ticket's session: with a ticket of
// TLS 1.2 no other version is offered. It may be used more than once; by TLS 1.3 a watcher of the network then sees
// that both connections are the same client's.
//
// Move-only; the destructor wipes it. About 1 KB of account::tls. One thread at a time.
class TlsTicket {
 public:
  TlsTicket() noexcept = default;
  TlsTicket(TlsTicket&& other) noexcept : ticket_(std::exchange(other.ticket_, nullptr)) {}
  TlsTicket& operator=(TlsTicket&& other) noexcept {
    std::swap(ticket_, other.ticket_);
    return *this;
  }
  ~TlsTicket();

  explicit operator bool() const noexcept { return ticket_ != nullptr; }
  const tls::Ticket* get() const noexcept { return ticket_; }

 private:
  friend class TlsStream;
  explicit TlsTicket(tls::Ticket* ticket) noexcept : ticket_(ticket) {}

  tls::Ticket* ticket_ = nullptr;
};

// Bytes to plan with: resident bytes of a session at rest; its record buffers while it reads or writes; and the peak of
// a handshake, with buffers and without the peer's certificates.
inline constexpr std::size_t kTlsIdleBytes = 3584;
inline constexpr std::size_t kTlsBufferBytes = 24 * 1024;
inline constexpr std::size_t kTlsHandshakeBytes = kTlsBufferBytes + 14 * 1024;

// TlsStream is one end of a TLS session over a TcpStream. It is a Stream, whose contract holds, and may be moved into
// one.
//
// An idle session holds no record buffers: about 4 KB; one that reads or writes, 24 KB more.
class TlsStream : public Stream {
 public:
  TlsStream() noexcept = default;

  // accept is the server's side of the handshake, connect the client's, which names the server `name`: with SNI, and to
  // check the certificate. Either ends within `deadline`.
  // Errors: those of TcpStream; truncated, no_memory, limit (too many handshakes under way), alert, untrusted,
  // protocol; invalid (the context is empty, or a client names no server).
  [[nodiscard]] static std::expected<TlsStream, Error> accept(TcpStream&& stream, const TlsContext& context,
                                                              Deadline deadline) noexcept;
  [[nodiscard]] static std::expected<TlsStream, Error> connect(TcpStream&& stream, const TlsContext& context,
                                                               const char* name, Deadline deadline) noexcept;
  // With a ticket, which may be empty, the client resumes that session if it can.
  [[nodiscard]] static std::expected<TlsStream, Error> connect(TcpStream&& stream, const TlsContext& context,
                                                               const char* name, const TlsTicket& ticket,
                                                               Deadline deadline) noexcept;

  const char* version() const noexcept;   // "TLSv1.3"
  const char* protocol() const noexcept;  // what ALPN has chosen, or null
  bool resumed() const noexcept;          // whether the handshake took up an earlier session

  // ticket takes the latest ticket that the server has given, of a client's session: by TLS 1.2 it comes with the
  // handshake, by TLS 1.3 after it, with the first bytes that are read. Each is given once. Errors: not_found (none has
  // come, or the context is without), no_memory.
  [[nodiscard]] std::expected<TlsTicket, Error> ticket() noexcept;

 private:
  explicit TlsStream(TcpStream&& tcp) noexcept : Stream(std::move(tcp)) {}
  static std::expected<TlsStream, Error> shake_hands(TcpStream&& stream, const TlsContext& context, const char* name,
                                                     const TlsTicket* ticket, Deadline deadline) noexcept;
};

// connect_tls connects to a host (coir/tcp.h) and is the client's side of the handshake with it: the address
// that accepts the connection has to have a certificate for the host's name, by the context. All of it ends within
// `deadline`. From a fiber or a thread. connector.cpp has it.
// Errors: those of connect and TlsStream::connect.
[[nodiscard]] std::expected<TlsStream, Error> connect_tls(std::string_view host, std::uint16_t port,
                                                          const TlsContext& context, Deadline deadline) noexcept;
[[nodiscard]] std::expected<TlsStream, Error> connect_tls(std::string_view host, std::uint16_t port,
                                                          const TlsContext& context, const TlsTicket& ticket,
                                                          Deadline deadline) noexcept;

// connect_tls with an address goes there and nowhere else, to the server called `name`.
// Errors: those of TcpStream::connect and TlsStream::connect.
[[nodiscard]] std::expected<TlsStream, Error> connect_tls(const Address& to, const char* name,
                                                          const TlsContext& context, Deadline deadline) noexcept;

// time_valid tells whether certificates are judged by the clock. A board without one starts in 1970; until its clock is
// set they are judged by the latest time that is certain to have passed: that of the build, or one given to
// time_was_seen, as the program knows it from an earlier run (in seconds since 1970). By that time a certificate can be
// expired, but never "not valid yet".
bool time_valid() noexcept;
void time_was_seen(std::int64_t seconds) noexcept;
// forget_times_seen takes back what time_was_seen has said, as a program does that knows the clock to be right by now.
void forget_times_seen() noexcept;
// time_of_build is that of the build, in seconds since 1970.
std::int64_t time_of_build() noexcept;

// TlsCounters count in the whole process. They may be read from any thread.
struct TlsCounters {
  Atomic<std::uint64_t> completed = 0;  // handshakes
  Atomic<std::uint64_t> resumed = 0;    // of these, without a certificate
  Atomic<std::uint64_t> failed = 0;     // for whatever reason but the next
  Atomic<std::uint64_t> refused = 0;    // for want of memory
  Atomic<std::uint64_t> under_way = 0;  // now
  Atomic<std::uint64_t> sessions = 0;   // now, established
};
const TlsCounters& tls_counters() noexcept;

}  // namespace coir
