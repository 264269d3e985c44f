#include "tls/session.h"

#include <errno.h>
#include <mbedtls/net_sockets.h>
#include <string.h>

#include <algorithm>

#include "socket/kernel.h"
#include "tls/library/library.h"
#include "tls/library/mbedtls_internals.h"

namespace coir::tls {

namespace {

// How much one call into mbedTLS receives: a record of any size, or 32 small ones. mbedTLS loops inside the call while
// records without data arrive; after this share the caller lets others run and checks its deadline. Each record is
// received in at least two pieces.
constexpr std::uint16_t kMostTaken = 20 * 1024;
constexpr std::uint8_t kMostTakes = 64;

// A handshake has one ChangeCipherSpec, and with TLS 1.3 perhaps another after a HelloRetryRequest.
constexpr std::uint8_t kMostCipherChanges = 2;

// A read that may not wait passes over so many records without data to find what stands behind them.
constexpr int kMostPassed = 8;

}  // namespace

// count counts the bytes handed to mbedTLS, and checks the type of a record that begins: mbedTLS itself drops any
// number of ChangeCipherSpec records of TLS 1.3, at any time.
int Session::count(unsigned char* into, std::size_t taken) noexcept {
  ++takes_;
  taken_ = static_cast<std::uint16_t>(taken_ + taken);
  buffers_->note_in(into + taken);
  if (coir_tls_begins_record(&ssl_) && into[0] == MBEDTLS_SSL_MSG_CHANGE_CIPHER_SPEC &&
      (established_ || ++cipher_changes_ > kMostCipherChanges)) {
    return MBEDTLS_ERR_SSL_UNEXPECTED_MESSAGE;
  }
  return static_cast<int>(taken);
}

int Session::receive_bytes(void* opaque, unsigned char* into, size_t size) {
  auto& self = *static_cast<Session*>(opaque);
  RecordBuffers& buffers = *self.buffers_;
  if (self.takes_ >= kMostTakes || self.taken_ >= kMostTaken) return MBEDTLS_ERR_SSL_WANT_READ;
  if (self.ahead_at_ < self.ahead_end_) {
    const std::size_t taken = std::min<std::size_t>(size, self.ahead_end_ - self.ahead_at_);
    memcpy(into, buffers.ahead + self.ahead_at_, taken);
    self.ahead_at_ += static_cast<std::uint16_t>(taken);
    return self.count(into, taken);
  }
  if (self.drained_) return MBEDTLS_ERR_SSL_WANT_READ;
  const iovec parts[] = {{into, size}, {buffers.ahead, RecordBuffers::kAhead}};
  ssize_t got;
  do {
    got = kernel::receive_parts(self.fd_, parts, 2);
  } while (got == -EINTR);
  if (got == 0) {
    self.hung_up_ = true;
    return 0;
  }
  if (got == -EAGAIN) {
    self.drained_ = true;
    return MBEDTLS_ERR_SSL_WANT_READ;
  }
  if (got < 0) {
    self.io_error_ = static_cast<int>(-got);
    return MBEDTLS_ERR_NET_RECV_FAILED;
  }
  const auto count = static_cast<std::size_t>(got);
  self.drained_ = count < size + RecordBuffers::kAhead;
  self.ahead_at_ = 0;
  self.ahead_end_ = static_cast<std::uint16_t>(count > size ? count - size : 0);
  return self.count(into, std::min(count, size));
}

int Session::send_bytes(void* opaque, const unsigned char* from, size_t size) {
  auto& self = *static_cast<Session*>(opaque);
  self.buffers_->note_out(from + size);
  if (self.filled_) return MBEDTLS_ERR_SSL_WANT_WRITE;
  ssize_t sent;
  do {
    sent = kernel::send(self.fd_, from, size, self.more_follows_ ? MSG_MORE : 0);
  } while (sent == -EINTR);
  if (sent >= 0) {
    self.filled_ = static_cast<std::size_t>(sent) < size;
    self.alerted_ |= coir_tls_is_alert(from, size) != 0;
    return static_cast<int>(sent);
  }
  if (sent == -EAGAIN) {
    self.filled_ = true;
    return MBEDTLS_ERR_SSL_WANT_WRITE;
  }
  // A client that has already gone needs no ticket; its data can still be read.
  if ((sent == -EPIPE || sent == -ECONNRESET) && coir_tls_gives_ticket(&self.ssl_)) return static_cast<int>(size);
  self.io_error_ = static_cast<int>(-sent);
  return MBEDTLS_ERR_NET_SEND_FAILED;
}

// await is where a session waits.
std::expected<void, Error> Session::await(Direction direction, Deadline deadline) noexcept {
  if (auto ready = wait(fd_, direction, deadline); !ready) {
    // acquire pairs with the release in end, which comes before the descriptor is closed: the wait found it closed.
    if (ended_.load(std::memory_order_acquire)) return std::unexpected(Error{ErrorCode::closed});
    return ready;
  }
  mark_ready(direction);
  return {};
}

// last_word is the number of an unread alert, or -1, when nothing can be sent any more. With the mutex held.
int Session::last_word() noexcept {
  if (!attach(false)) return -1;
  drained_ = false;
  taken_ = takes_ = 0;
  const Paying paying(allocator_);
  return on_worker_stack([this] { return coir_tls_last_word(&ssl_); });
}

std::unexpected<Error> Session::failed(int code) noexcept {
  const Holding held(mutex_);
  if (ended_.load(std::memory_order_acquire)) return std::unexpected(Error{ErrorCode::closed});
  if (failure_.code != ErrorCode{}) return std::unexpected(failure_);
  // Unsent data may lie there in the clear.
  if (buffers_ != nullptr) buffers_->note_out(buffers_->out() + coir_tls_out_bytes);
  switch (code) {
    case MBEDTLS_ERR_NET_SEND_FAILED:
      failure_ = kernel::connection_error(io_error_);
      // A peer that hangs up while this side writes may have sent an alert before.
      if (const int alert = last_word(); alert >= 0) failure_ = {ErrorCode::alert, alert};
      break;
    case MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY:
      heard_goodbye_ = true;
      return std::unexpected(error_of(code));
    case MBEDTLS_ERR_SSL_INVALID_MAC:
    case MBEDTLS_ERR_SSL_INVALID_RECORD:
      failure_ = error_of(code);
      if (const int alert = coir_tls_plain_alert(&ssl_); alert >= 0) failure_ = {ErrorCode::alert, alert};
      break;
    case MBEDTLS_ERR_NET_RECV_FAILED:
      failure_ = kernel::connection_error(io_error_);
      break;
    case MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE:
      failure_ = {ErrorCode::alert, coir_tls_alert(&ssl_)};
      break;
    case MBEDTLS_ERR_X509_CERT_VERIFY_FAILED:
    case MBEDTLS_ERR_SSL_BAD_CERTIFICATE:
      failure_ = {ErrorCode::untrusted, static_cast<int>(mbedtls_ssl_get_verify_result(&ssl_))};
      break;
    default:
      failure_ = error_of(code);
      // A certificate that is not understood has not been judged: all flags are set.
      if (failure_ == ErrorCode::protocol && is_unreadable(code)) failure_ = {ErrorCode::untrusted, -1};
  }
  return std::unexpected(failure_);
}

std::expected<std::size_t, Error> read(Session& session, TcpStream& below, std::span<char> into,
                                       Deadline deadline) noexcept {
  const Session::User user(session, below);
  if (!user) return std::unexpected(Error{ErrorCode::closed});
  int passed = 0;
  // Any number of records without data may come: others get their turn.
  const auto go_on = [&]() -> std::expected<void, Error> {
    if (deadline.passed() && ++passed <= kMostPassed && !drained(session)) return {};
    return Session::yield_to_events(deadline);
  };
  for (;;) {
    const int code = session.call([&]() noexcept -> int {
      if (session.heard_goodbye_) return MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY;
      coir_tls_allow_empty(&session.ssl_);
      const int got = mbedtls_ssl_read(&session.ssl_, reinterpret_cast<unsigned char*>(into.data()), into.size());
      if (got < 0) session.tell_fault(got);
      return got;
    });
    if (code > 0) return static_cast<std::size_t>(code);
    switch (code) {
      case MBEDTLS_ERR_SSL_WANT_READ:
      case MBEDTLS_ERR_SSL_WANT_WRITE: {
        const auto direction = code == MBEDTLS_ERR_SSL_WANT_READ ? Direction::readable : Direction::writable;
        // More bytes remain than this call may take, or mbedTLS has buffered a message, behind a ticket for example.
        // The socket need not become readable for either.
        if (direction == Direction::readable && !drained(session)) {
          if (auto going = go_on(); !going) return std::unexpected(going.error());
          break;
        }
        if (auto ready = session.await(direction, deadline); !ready) return std::unexpected(ready.error());
        break;
      }
      case MBEDTLS_ERR_SSL_ASYNC_IN_PROGRESS:
      case MBEDTLS_ERR_SSL_CRYPTO_IN_PROGRESS:
        break;
      case 0:
        if (into.empty()) return std::unexpected(Error{ErrorCode::invalid});
        if (session.hung_up_) return session.failed(MBEDTLS_ERR_SSL_CONN_EOF);
        [[fallthrough]];  // an empty record
      case MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET:
        if (auto going = go_on(); !going) return std::unexpected(going.error());
        break;
      default:
        return session.failed(code);
    }
  }
}

// write_records sends bytes that `fill` puts in place, a record's worth at a time. It returns when something has been
// sent and more would have to wait, or after some records.
//
// A record that is encrypted but could not be sent stays in mbedTLS, which wants the call repeated with the same
// length. It counts as sent when it is. A caller that repeats with fewer bytes is credited with the rest at its next
// call.
template <class Fill>
std::expected<std::size_t, Error> Session::write_records(TcpStream& below, std::size_t wanted, Deadline deadline,
                                                         Fill fill) noexcept {
  constexpr std::size_t kBlockBytes = std::size_t{4} * MBEDTLS_SSL_OUT_CONTENT_LEN;
  const User user(*this, below);
  if (!user) return std::unexpected(Error{ErrorCode::closed});
  if (credit_ > 0) {
    const auto counted = static_cast<std::uint16_t>(std::min<std::size_t>(credit_, wanted));
    credit_ -= counted;
    return counted;
  }
  for (;;) {
    std::size_t sent = 0;
    const int code = call([&]() noexcept -> int {
      unsigned char block[kBlockBytes];
      // While a record is pending this block's content does not matter: mbedTLS has the data.
      std::size_t at = 0, end = pending_;
      if (end != 0 && !coir_tls_unsent(&ssl_)) {
        // A reader with an alert to send has sent this record first. Repeated now, it would go out twice.
        sent = std::exchange(pending_, 0);
        return 0;
      }
      if (end == 0) {
        const ssize_t filled = fill(block, std::min(wanted, sizeof block));
        if (filled < 0) io_error_ = static_cast<int>(-filled);
        if (filled <= 0) return filled < 0 ? MBEDTLS_ERR_NET_SEND_FAILED : 0;
        end = static_cast<std::size_t>(filled);
      }
      const auto most = static_cast<std::size_t>(mbedtls_ssl_get_max_out_record_payload(&ssl_));
      while (at < end) {
        const std::size_t size = std::min(end - at, most);
        more_follows_ = at + size < end;
        int outcome;
        do {
          outcome = mbedtls_ssl_write(&ssl_, block + at, size);
        } while (outcome == MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET);
        pending_ = outcome == MBEDTLS_ERR_SSL_WANT_WRITE ? static_cast<std::uint16_t>(size) : 0;
        more_follows_ = false;
        if (outcome < 0) return outcome;
        sent = at += size;
      }
      return 0;
    });
    if (sent > wanted) credit_ = static_cast<std::uint16_t>(sent - wanted);
    if (sent > 0) return std::min(sent, wanted);
    if (code == 0) return 0;
    if (code != MBEDTLS_ERR_SSL_WANT_WRITE && code != MBEDTLS_ERR_SSL_WANT_READ) return failed(code);
    const auto direction = code == MBEDTLS_ERR_SSL_WANT_READ ? Direction::readable : Direction::writable;
    if (auto ready = await(direction, deadline); !ready) return std::unexpected(ready.error());
  }
}

std::expected<std::size_t, Error> write_some(Session& session, TcpStream& below, std::span<const iovec> from,
                                             Deadline deadline) noexcept {
  std::size_t wanted = 0;
  for (const iovec& part : from) wanted += part.iov_len;
  if (wanted == 0) return 0;
  return session.write_records(below, wanted, deadline, [from](unsigned char* into, std::size_t room) {
    std::size_t filled = 0;
    for (const iovec& part : from) {
      const std::size_t taken = std::min(room - filled, part.iov_len);
      memcpy(into + filled, part.iov_base, taken);
      if ((filled += taken) == room) break;
    }
    return static_cast<ssize_t>(filled);
  });
}

std::expected<std::size_t, Error> send_file(Session& session, TcpStream& below, int file, std::uint64_t offset,
                                            std::size_t count, Deadline deadline) noexcept {
  const auto sent = session.write_records(below, count, deadline, [=](unsigned char* into, std::size_t room) {
    ssize_t got;
    do {
      got = kernel::read_at(file, into, room, offset);
    } while (got == -EINTR);
    return got;
  });
  if (sent && *sent == 0) return std::unexpected(Error{ErrorCode::end_of_stream});
  return sent;
}

}  // namespace coir::tls
