#pragma once

#include <coir/net/tls.h>

#include <utility>

namespace coir {

namespace tls {
struct Ticket;
}  // namespace tls

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

}  // namespace coir
