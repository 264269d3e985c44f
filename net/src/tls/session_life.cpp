// A session's beginning, rest and end.
#include <coir/cancel_scope.h>
#include <coir/config.h>
#include <mbedtls/ssl.h>
#include <stdlib.h>

#include <new>

#if !COIR_NO_ASYNC
#include <coir/fiber.h>
#endif

#include "tls/library/library.h"
#include "tls/library/mbedtls_internals.h"
#include "tls/peer.h"
#include "tls/session.h"
#include "tls/ticket.h"

namespace coir::tls {
namespace {

// The memory of a handshake beside record buffers, charged before it begins: running out on the way would cut the
// client off. Certificates of the peer come on top.
constexpr std::size_t kHandshakeBytes = kTlsHandshakeBytes - kTlsBufferBytes;

constinit TlsCounters g_counters;

}  // namespace
}  // namespace coir::tls

namespace coir {
const TlsCounters& tls_counters() noexcept {
  return tls::g_counters;
}
}  // namespace coir

namespace coir::tls {

Session::Session(Config& config, int fd, Deadline handshake_deadline) noexcept
    : config_(config), handshake_deadline_(handshake_deadline), allocator_(account::handshakes), fd_(fd) {
  config.hold();
  mbedtls_ssl_init(&ssl_);
}

Session::~Session() {
  Config::release(&config_);
}

std::expected<Session*, Error> Session::create(Config& config, int fd, const char* name, const Ticket* ticket,
                                               Deadline deadline) noexcept {
  void* const memory = malloc(sizeof(Session));
  if (memory == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  auto* const session = ::new (memory) Session(config, fd, deadline);
  g_counters.under_way.fetch_add(1, std::memory_order_relaxed);
  int code = MBEDTLS_ERR_SSL_ALLOC_FAILED;
  if (session->allocator_.reserve(kHandshakeBytes) && session->allocator_.take(sizeof(Session))) {
    code = session->set_up(name, ticket);
  } else if (account::handshakes.lacks(kHandshakeBytes) != 0) {
    end(session, false);
    return std::unexpected(Error{ErrorCode::limit});
  }
  if (code == 0) return session;
  end(session, false);
  return std::unexpected(error_of(code));
}

// set_up makes mbedTLS use the record buffers in place of its own allocation.
int Session::set_up(const char* name, const Ticket* ticket) noexcept {
  RecordBuffers* const buffers = take_buffers(false);
  if (buffers == nullptr) return MBEDTLS_ERR_SSL_ALLOC_FAILED;
  const Paying paying(allocator_);
  const int code = on_worker_stack([&]() noexcept -> int {
    const Lent lent = {{buffers->in(), buffers->out()}, {coir_tls_in_bytes, coir_tls_out_bytes}};
    lend(&lent);
    const int outcome = mbedtls_ssl_setup(&ssl_, &config_.ssl);
    lend(nullptr);
    if (outcome != 0) return outcome;
    buffers_ = buffers;
    // The record counters start at zero.
    __builtin_memset(buffers->in(), 0, sizeof counter_);
    __builtin_memset(buffers->out(), 0, sizeof counter_);
    mbedtls_ssl_set_bio(&ssl_, this, send_bytes, receive_bytes, nullptr);
    if (mbedtls_ssl_conf_get_endpoint(&config_.ssl) == MBEDTLS_SSL_IS_SERVER) return 0;
    const int named = mbedtls_ssl_set_hostname(&ssl_, name);
    if (named != 0 || ticket == nullptr) return named;
    return ticket->offer(ssl_, config_, name);
  });
  if (buffers_ == nullptr) give_buffers(buffers);
  return code;
}

bool Session::attach(bool spare_only) noexcept {
  if (buffers_ != nullptr) return true;
  buffers_ = take_buffers(spare_only);
  if (buffers_ == nullptr) return false;
  coir_tls_attach(&ssl_, buffers_->in(), buffers_->out(), counter_);
  return true;
}

void Session::detach() noexcept {
  if (buffers_ == nullptr) return;
  coir_tls_detach(&ssl_, counter_);
  give_buffers(std::exchange(buffers_, nullptr));
}

void rest(Session& session) noexcept {
  const Holding held(session.mutex_);
  if (session.ahead_at_ != session.ahead_end_ || !coir_tls_at_rest(&session.ssl_)) return;
  session.detach();
  session.allocator_.flush();
}

// complete follows the handshake: the session no longer counts among those under way.
std::expected<void, Error> Session::complete() noexcept {
  const Holding held(mutex_);
  {
    const Paying paying(allocator_);
    const mbedtls_x509_crt* const shown = config_.remembers_peers ? mbedtls_ssl_get_peer_cert(&ssl_) : nullptr;
    if (shown != nullptr) {
      peer_ = on_worker_stack([shown]() noexcept { return remembered(*shown); });
      if (peer_ == nullptr) {
        failure_ = {ErrorCode::no_memory};
        return std::unexpected(failure_);
      }
    }
    on_worker_stack([&] { coir_tls_forget(&ssl_); });
  }
  if (!allocator_.move_to(account::tls)) {
    failure_ = {ErrorCode::no_memory};
    return std::unexpected(failure_);
  }
  established_ = true;
  g_counters.under_way.fetch_sub(1, std::memory_order_relaxed);
  g_counters.completed.fetch_add(1, std::memory_order_relaxed);
  g_counters.sessions.fetch_add(1, std::memory_order_relaxed);
  if (resumed_) g_counters.resumed.fetch_add(1, std::memory_order_relaxed);
  return {};
}

// say_goodbye sends close_notify if that needs no waiting, and never behind a record that could not be sent. With the
// mutex held.
void Session::say_goodbye() noexcept {
  if (said_goodbye_ || !established_ || failure_.code != ErrorCode{}) return;
  if (coir_tls_unsent(&ssl_) || !attach(true)) return;
  said_goodbye_ = true;
  const Paying paying(allocator_);
  static_cast<void>(on_worker_stack([this] { return mbedtls_ssl_close_notify(&ssl_); }));
}

void shutdown_write(Session& session) noexcept {
  const Holding held(session.mutex_);
  session.say_goodbye();
}

void end(Session* session, bool in_good_order) noexcept {
  // Two have closed the stream at the same moment.
  if (session == nullptr) return;
  {
    const Holding held(session->mutex_);
    if (in_good_order) session->say_goodbye();
    // release pairs with the acquire in await.
    session->ended_.store(true, std::memory_order_release);
  }
  Session::leave(*session);
}

void Session::leave(Session& session) noexcept {
  // release and acquire: everything that a user did happens before the end of the session.
  if (session.users_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (session.established_) {
    g_counters.sessions.fetch_sub(1, std::memory_order_relaxed);
  } else {
    g_counters.under_way.fetch_sub(1, std::memory_order_relaxed);
    const bool refused = session.failure_ == ErrorCode::no_memory || session.buffers_ == nullptr;
    (refused ? g_counters.refused : g_counters.failed).fetch_add(1, std::memory_order_relaxed);
  }
  session.detach();
  {
    const Paying paying(session.allocator_);
    on_worker_stack([&] { mbedtls_ssl_free(&session.ssl_); });
    coir_tls_free(session.peer_);
  }
  session.allocator_.give(sizeof(Session));
  session.~Session();
  free(&session);
}

std::expected<void, Error> Session::yield_to_events(Deadline deadline) noexcept {
  if (deadline.passed()) return std::unexpected(Error{ErrorCode::timed_out});
  if (auto going = check_cancelled(); !going) return going;
#if !COIR_NO_ASYNC
  coir::yield_to_events();
#endif
  return {};
}

bool drained(Session& session) noexcept {
  const Holding held(session.mutex_);
  return session.drained_ && session.ahead_at_ == session.ahead_end_ && mbedtls_ssl_check_pending(&session.ssl_) == 0;
}

bool midway(Session& session) noexcept {
  const Holding held(session.mutex_);
  return session.has_input() || !coir_tls_at_rest(&session.ssl_);
}

void mark_ready(Session& session, Direction direction) noexcept {
  session.mark_ready(direction);
}
Deadline handshake_deadline(const Session& session) noexcept {
  return session.handshake_deadline();
}

}  // namespace coir::tls
