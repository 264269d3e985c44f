#include <coir/program.h>

#include "inside.h"
#include "session.h"

#if !(defined(COIR_NO_ASYNC) && COIR_NO_ASYNC)
#include <coir/fiber.h>
#endif

namespace coir::tls {
namespace {

// After so much of a handshake others get their turn. One step of it may take longer, a signature with RSA the longest.
constexpr std::int64_t kSliceNs = 200'000;

void give_way_to_others() noexcept {
#if !(defined(COIR_NO_ASYNC) && COIR_NO_ASYNC)
  give_way();
#endif
}

}  // namespace

// handshake_slice takes steps of the handshake until one has to wait or the slice is over.
Session::Step Session::handshake_slice(int& code) noexcept {
  const std::int64_t end_ns = monotonic_ns() + kSliceNs;
  code = 0;
  while (!coir_tls_done(&ssl_)) {
    if (coir_tls_resumes(&ssl_)) resumed_ = true;
    switch (code = mbedtls_ssl_handshake_step(&ssl_)) {
      case 0:
      case MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET:
        break;
      case MBEDTLS_ERR_SSL_WANT_READ:
        return Step::want_read;
      case MBEDTLS_ERR_SSL_WANT_WRITE:
        return Step::want_write;
      case MBEDTLS_ERR_SSL_ASYNC_IN_PROGRESS:
      case MBEDTLS_ERR_SSL_CRYPTO_IN_PROGRESS:
        return Step::sliced;
      default:
        return Step::failed;
    }
    if (monotonic_ns() >= end_ns) return coir_tls_done(&ssl_) ? Step::over : Step::sliced;
  }
  return Step::over;
}

std::expected<void, Error> Session::handshake(Deadline deadline) noexcept {
  const User user(*this);
  if (failure_.code != ErrorCode{}) return std::unexpected(failure_);
  for (;;) {
    int code = 0;
    Step step = Step::failed;
    const int outcome = call([&]() noexcept -> int {
      step = handshake_slice(code);
      return 0;
    });
    if (outcome != 0) return failed(outcome);
    switch (step) {
      case Step::over:
        return complete();
      case Step::sliced:
        give_way_to_others();
        break;
      case Step::failed:
        return failed(code);
      case Step::want_read:
      case Step::want_write: {
        const auto direction = step == Step::want_read ? Direction::readable : Direction::writable;
        if (auto ready = await(direction, deadline); !ready) return ready;
        break;
      }
    }
  }
}

}  // namespace coir::tls

namespace coir {

std::expected<void, Error> Stream::begin_tls(const TlsContext& context, const char* name) noexcept {
  if (!context || session_ != nullptr) return std::unexpected(Error{ErrorCode::invalid});
  auto session = tls::Session::create(*context.config(), fd(), name);
  if (!session) return std::unexpected(session.error());
  session_ = *session;
  return {};
}

std::expected<void, Error> Stream::handshake(Deadline deadline) noexcept {
  return session_->handshake(deadline);
}

Direction Stream::awaited() const noexcept {
  return session_->awaited();
}

std::expected<TlsStream, Error> TlsStream::shake_hands(TcpStream&& tcp, const TlsContext& context, const char* name,
                                                       Deadline deadline) noexcept {
  TlsStream stream(std::move(tcp));
  if (auto begun = stream.begin_tls(context, name); !begun) return std::unexpected(begun.error());
  if (auto done = stream.handshake(deadline); !done) return std::unexpected(done.error());
  return stream;
}

std::expected<TlsStream, Error> TlsStream::accept(TcpStream&& stream, const TlsContext& context,
                                                  Deadline deadline) noexcept {
  return shake_hands(std::move(stream), context, nullptr, deadline);
}

std::expected<TlsStream, Error> TlsStream::connect(TcpStream&& stream, const TlsContext& context, const char* name,
                                                   Deadline deadline) noexcept {
  return shake_hands(std::move(stream), context, name, deadline);
}

std::expected<TlsStream, Error> connect_tls(const Address& to, const char* name, const TlsContext& context,
                                            Deadline deadline) noexcept {
  auto stream = TcpStream::connect(to, deadline);
  if (!stream) return std::unexpected(stream.error());
  return TlsStream::connect(std::move(*stream), context, name, deadline);
}

const char* TlsStream::version() const noexcept {
  return session_ == nullptr ? nullptr : mbedtls_ssl_get_version(&session_->ssl());
}
const char* TlsStream::protocol() const noexcept {
  return session_ == nullptr ? nullptr : mbedtls_ssl_get_alpn_protocol(&session_->ssl());
}
bool TlsStream::resumed() const noexcept {
  return session_ != nullptr && session_->resumed();
}

}  // namespace coir
