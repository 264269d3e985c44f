// Ending a session because of a fault of the peer, so that the peer learns why.
#include <sys/socket.h>

#include <algorithm>

#include "tls/library/mbedtls_internals.h"
#include "tls/session.h"

namespace coir::tls {
namespace {

// How long a server waits for a client to read why its handshake has failed.
constexpr std::chrono::seconds kLingerFor(2);

}  // namespace

// tell_fault sends an alert where mbedTLS has ended the session without one: after malformed records, and after
// messages that it lacks, such as KeyUpdate. Inside `call`.
void Session::tell_fault(int code) noexcept {
  const int alert = coir_tls_alert_for(&ssl_, code);
  if (alert < 0 || alerted_) return;
  static_cast<void>(
      mbedtls_ssl_send_alert_message(&ssl_, MBEDTLS_SSL_ALERT_LEVEL_FATAL, static_cast<unsigned char>(alert)));
}

// begin_linger frees everything that only a live session needs: from here on it is a descriptor and an error.
void Session::begin_linger() noexcept {
  const Holding held(mutex_);
  // relaxed: the fiber that ends the session holds the mutex meanwhile.
  if (ended_.load(std::memory_order_relaxed)) return;
  lingering_ = true;
  handshake_deadline_ = std::min(handshake_deadline_, Deadline::after(kLingerFor));
  detach();
  {
    const Paying paying(allocator_);
    on_worker_stack([this] { mbedtls_ssl_free(&ssl_); });
  }
  allocator_.flush();
  ::shutdown(fd_, SHUT_WR);
}

// linger: a client reads the bytes that have arrived and does not wait for more, because its caller waits for the
// outcome.
std::expected<bool, Error> Session::linger() noexcept {
  const bool waits = mbedtls_ssl_conf_get_endpoint(&config_.ssl) == MBEDTLS_SSL_IS_SERVER;
  for (;;) {
    Linger::Step step;
    {
      const Holding held(mutex_);
      if (ended_.load(std::memory_order_relaxed)) return std::unexpected(Error{ErrorCode::closed});
      step = linger_.drop(fd_);
    }
    if (step == Linger::Step::over || !waits) return std::unexpected(failure_);
    awaited_ = Direction::readable;
    if (step == Linger::Step::waits) return false;
    if (!yield_to_events(handshake_deadline_)) return std::unexpected(failure_);
  }
}

bool has_told_fault(Session& session) noexcept {
  const Holding held(session.mutex_);
  return session.failure_.code != ErrorCode{} && session.alerted_;
}

}  // namespace coir::tls
