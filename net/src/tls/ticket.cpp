#include "tls/ticket.h"

#include <coir/tls.h>
#include <coir/worker_stack.h>
#include <string.h>

#include "tls/library/library.h"
#include "tls/library/mbedtls_internals.h"
#include "tls/session.h"

namespace coir {
namespace tls {

std::expected<Ticket*, Error> Ticket::create(mbedtls_ssl_context& ssl, Config& config) noexcept {
  if (!coir_tls_resumable(&ssl)) return std::unexpected(Error{ErrorCode::not_found});
  const char* const name = coir_tls_name(&ssl);
  const std::size_t bytes = strlen(name) + 1;
  auto* const ticket = static_cast<Ticket*>(coir_tls_calloc(1, sizeof(Ticket) + bytes));
  if (ticket == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  ticket->name = static_cast<char*>(memcpy(ticket + 1, name, bytes));
  ticket->config = &config;
  config.hold();
  mbedtls_ssl_session_init(&ticket->session);
  const int code = on_worker_stack([&] { return mbedtls_ssl_get_session(&ssl, &ticket->session); });
  if (code == 0) return ticket;
  destroy(ticket);
  // mbedTLS gives each ticket away once.
  if (code == MBEDTLS_ERR_SSL_FEATURE_UNAVAILABLE) return std::unexpected(Error{ErrorCode::not_found});
  return std::unexpected(error_of(code));
}

void Ticket::destroy(Ticket* ticket) noexcept {
  if (ticket == nullptr) return;
  mbedtls_ssl_session_free(&ticket->session);
  Config::release(ticket->config);
  coir_tls_free(ticket);
}

int Ticket::offer(mbedtls_ssl_context& ssl, const Config& now, const char* asked) const noexcept {
  if (config != &now || asked == nullptr || strcmp(name, asked) != 0) return 0;
  const int code = mbedtls_ssl_set_session(&ssl, &session);
  return code == MBEDTLS_ERR_SSL_ALLOC_FAILED ? code : 0;
}

std::expected<Ticket*, Error> Session::ticket() noexcept {
  const Holding held(mutex_);
  if (!established_ || ended_.load(std::memory_order_relaxed)) return std::unexpected(Error{ErrorCode::not_found});
  return Ticket::create(ssl_, config_);
}

}  // namespace tls

TlsTicket::~TlsTicket() {
  tls::Ticket::destroy(ticket_);
}

std::expected<TlsTicket, Error> TlsStream::ticket() noexcept {
  if (session_ == nullptr) return std::unexpected(Error{ErrorCode::not_found});
  const auto ticket = session_->ticket();
  if (!ticket) return std::unexpected(ticket.error());
  return TlsTicket(*ticket);
}

}  // namespace coir
