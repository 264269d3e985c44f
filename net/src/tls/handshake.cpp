#include <coir/program.h>

#include "inside.h"
#include "session.h"

#if !(defined(COIR_NO_ASYNC) && COIR_NO_ASYNC)
#include <coir/fiber.h>
#include <coir/runtime.h>
#include <coir/semaphore.h>
#endif

namespace coir::tls {
namespace {

// After so much of a handshake others get their turn. One step of it may take longer, a signature with RSA the longest.
constexpr std::int64_t kSliceNs = 200'000;

// Turn is the right to compute: as many handshakes have it as there are workers, and the others wait in line. Without
// it a crowd of them would take a slice each before anybody else came in between. It is held from slice to slice, and
// given up to wait for the peer.
#if defined(COIR_NO_ASYNC) && COIR_NO_ASYNC
class Turn {
 public:
  static std::expected<void, Error> take() noexcept { return {}; }
  static void give() noexcept {}
  static void give_way() noexcept {}
};
#else
constinit Semaphore g_turns(1);
constinit Atomic<bool> g_turns_counted{false};

class Turn {
 public:
  ~Turn() { give(); }

  // take waits for as long as those before it compute. Error: cancelled.
  std::expected<void, Error> take() noexcept {
    if (!g_turns_counted.load(std::memory_order_relaxed) && !g_turns_counted.exchange(true)) {
      const std::uint32_t workers = stats().workers;
      if (workers > 1) g_turns.release(workers - 1);
    }
    if (held_) return {};
    const auto taken = g_turns.acquire();
    held_ = taken.has_value();
    // Where there is nothing to wait on, a plain thread beside the only worker, it goes on all the same.
    if (!held_ && taken.error() != ErrorCode::unsupported) return taken;
    return {};
  }
  void give() noexcept {
    if (held_) g_turns.release();
    held_ = false;
  }
  static void give_way() noexcept { coir::give_way(); }

 private:
  bool held_ = false;
};
#endif

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
  Turn turn;
  for (;;) {
    if (auto taken = turn.take(); !taken) return taken;
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
        turn.give_way();
        break;
      case Step::failed:
        return failed(code);
      case Step::want_read:
      case Step::want_write: {
        turn.give();
        awaited_ = step == Step::want_read ? Direction::readable : Direction::writable;
        if (auto ready = await(awaited_, deadline); !ready) return ready;
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
