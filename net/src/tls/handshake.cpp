#include <coir/config.h>
#include <coir/net/randomness.h>
#include <coir/program.h>
#include <coir/sum.h>
#include <coir/tls.h>

#include "tls/library/mbedtls_internals.h"
#include "tls/session.h"

#if !COIR_NO_ASYNC
#include <coir/runtime.h>
#include <coir/semaphore.h>
#endif

namespace coir::tls {
namespace {

// The slice of a handshake after which other fibers run. One step may take longer, an RSA signature the longest.
constexpr std::int64_t kSliceNs = 200'000;

// Turn is the right to compute: as many handshakes have it as there are workers, and the others wait in line. Without
// it, each of many handshakes would take a slice before any other fiber ran. It is held from slice to slice, and
// released to wait for the peer.
#if COIR_NO_ASYNC
class Turn {
 public:
  static std::expected<void, Error> take(Deadline) noexcept { return {}; }
};
#else
constinit Semaphore g_turns(1);
constinit Atomic<bool> g_turns_counted{false};

class Turn {
 public:
  ~Turn() {
    if (held_) g_turns.release();
  }

  // take waits while the handshakes before it compute. Errors: timed_out, cancelled.
  std::expected<void, Error> take(Deadline deadline) noexcept {
    if (!g_turns_counted.load(std::memory_order_relaxed) && !g_turns_counted.exchange(true)) {
      const std::uint32_t workers = stats().workers;
      if (workers > 1) g_turns.release(workers - 1);
    }
    if (held_) return {};
    const auto taken = g_turns.acquire(1, deadline);
    held_ = taken.has_value();
    // A plain thread beside the only worker cannot wait, and computes without a turn.
    if (!held_ && taken.error() != ErrorCode::unsupported) return taken;
    return {};
  }

 private:
  bool held_ = false;
};
#endif

}  // namespace

// ask_for takes the FNV-1a digest of the name in lower case. A client could resume under another name of the same
// digest, and would gain nothing: the policy is the same for all names.
void Session::ask_for(std::string_view name) noexcept {
  std::uint32_t digest = kEmptySum;
  for (const char c : name) {
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
    digest = sum_of({&lower, 1}, digest);
  }
  asked_name_ = digest != 0 ? digest : 1;
}

int Session::handshake_step() noexcept {
  coir_tls_bind_ticket(&ssl_, asked_name_);
  // A client hopes so until the server has answered.
  resumed_ = coir_tls_resumes(&ssl_);
  if (const int code = coir_tls_begin_step(&ssl_); code != 0) return code;
  alerted_ = false;
  return mbedtls_ssl_handshake_step(&ssl_);
}

// handshake_slice takes steps of the handshake until one has to wait or the slice is over.
Session::Step Session::handshake_slice(int& code) noexcept {
  const std::int64_t end_ns = monotonic_ns() + kSliceNs;
  code = 0;
  while (!coir_tls_done(&ssl_)) {
    switch (code = handshake_step()) {
      case 0:
      case MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET:
        break;
      case MBEDTLS_ERR_SSL_WANT_READ:
        return has_input() ? Step::sliced : Step::want_read;
      case MBEDTLS_ERR_SSL_WANT_WRITE:
        return Step::want_write;
      case MBEDTLS_ERR_SSL_ASYNC_IN_PROGRESS:
      case MBEDTLS_ERR_SSL_CRYPTO_IN_PROGRESS:
        return Step::sliced;
      default:
        tell_fault(code);
        return Step::failed;
    }
    if (monotonic_ns() >= end_ns) return coir_tls_done(&ssl_) ? Step::over : Step::sliced;
  }
  return Step::over;
}

std::expected<bool, Error> Session::advance(TcpStream& below) noexcept {
  const User user(*this, below);
  if (!user) return std::unexpected(Error{ErrorCode::closed});
  if (lingering_) return linger();
  if (handshake_deadline_.passed()) return std::unexpected(Error{ErrorCode::timed_out});
  Turn turn;
  for (;;) {
    if (auto taken = turn.take(handshake_deadline_); !taken) return std::unexpected(taken.error());
    int code = 0;
    Step step = Step::failed;
    const int outcome = call([&]() noexcept -> int {
      step = handshake_slice(code);
      return 0;
    });
    if (outcome != 0) return failed(outcome);
    switch (step) {
      case Step::over:
        if (auto completed = complete(); !completed) return std::unexpected(completed.error());
        return true;
      case Step::sliced:
        // A handshake that never has to wait must not hold the processor longer than others.
        if (auto going = yield_to_events(handshake_deadline_); !going) return std::unexpected(going.error());
        break;
      case Step::failed: {
        const auto fault = failed(code);
        if (!alerted_) return fault;
        begin_linger();
        return linger();
      }
      case Step::want_read:
      case Step::want_write:
        awaited_ = step == Step::want_read ? Direction::readable : Direction::writable;
        return false;
    }
  }
}

std::expected<void, Error> Session::handshake(TcpStream& below) noexcept {
  const User user(*this, below);
  if (!user) return std::unexpected(Error{ErrorCode::closed});
  for (;;) {
    const auto over = advance(below);
    if (!over) return std::unexpected(over.error());
    if (*over) return {};
    if (auto ready = await(awaited_, handshake_deadline_); !ready)
      return lingering_ ? std::unexpected(failure_) : ready;
  }
}

}  // namespace coir::tls

namespace coir {

std::expected<void, Error> Stream::begin_tls(const TlsContext& context, const char* name, Deadline deadline,
                                             const TlsTicket* ticket) noexcept {
  if (!context || session_ != nullptr) return std::unexpected(Error{ErrorCode::invalid});
  // Without a name mbedTLS would not check the server's name at all.
  const bool client = mbedtls_ssl_conf_get_endpoint(&context.config()->ssl) == MBEDTLS_SSL_IS_CLIENT;
  if (client && name == nullptr) return std::unexpected(Error{ErrorCode::invalid});
#if !COIR_NO_ASYNC
  // A step of the handshake would hold up the worker.
  if (auto ready = await_randomness(deadline); !ready) return ready;
#endif
  auto session =
      tls::Session::create(*context.config(), fd(), name, ticket == nullptr ? nullptr : ticket->get(), deadline);
  if (!session) return std::unexpected(session.error());
  session_ = *session;
  return {};
}

std::expected<bool, Error> Stream::advance_handshake() noexcept {
  return session_->advance(tcp_);
}

std::expected<void, Error> Stream::handshake() noexcept {
  return session_->handshake(tcp_);
}

Direction Stream::awaited() const noexcept {
  return session_->awaited();
}

std::expected<TlsStream, Error> TlsStream::shake_hands(TcpStream&& tcp, const TlsContext& context, const char* name,
                                                       const TlsTicket* ticket, Deadline deadline) noexcept {
  TlsStream stream(std::move(tcp));
  if (auto begun = stream.begin_tls(context, name, deadline, ticket); !begun) return std::unexpected(begun.error());
  if (auto done = stream.handshake(); !done) return std::unexpected(done.error());
  return stream;
}

std::expected<TlsStream, Error> TlsStream::accept(TcpStream&& stream, const TlsContext& context,
                                                  Deadline deadline) noexcept {
  return shake_hands(std::move(stream), context, nullptr, nullptr, deadline);
}

std::expected<TlsStream, Error> TlsStream::connect(TcpStream&& stream, const TlsContext& context, const char* name,
                                                   Deadline deadline) noexcept {
  return shake_hands(std::move(stream), context, name, nullptr, deadline);
}

std::expected<TlsStream, Error> TlsStream::connect(TcpStream&& stream, const TlsContext& context, const char* name,
                                                   const TlsTicket& ticket, Deadline deadline) noexcept {
  return shake_hands(std::move(stream), context, name, &ticket, deadline);
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

const TlsPeer* tls::client(const Session& session) noexcept {
  return session.peer();
}

}  // namespace coir
