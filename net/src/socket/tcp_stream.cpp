#include <coir/budget.h>
#include <coir/sleep.h>
#include <coir/tcp.h>
#include <coir/wait.h>
#include <errno.h>
#include <limits.h>
#include <sys/socket.h>

#include <algorithm>

#include "socket/attempt.h"
#include "socket/kernel.h"
#include "socket/write_all.h"

namespace coir {
namespace {

using Use = detail::UsedDescriptor::Use;

std::unexpected<Error> closed() noexcept {
  return std::unexpected(Error{ErrorCode::closed});
}

// failed maps a negative result of a function of kernel.h.
std::unexpected<Error> failed(ssize_t negative) noexcept {
  return std::unexpected(Error::from_errno(static_cast<int>(-negative)));
}

std::unexpected<Error> lost(ssize_t negative) noexcept {
  return std::unexpected(kernel::connection_error(static_cast<int>(-negative)));
}

std::expected<Address, Error> name_of(int (*ask)(int, sockaddr_storage&, socklen_t&), int fd) noexcept {
  sockaddr_storage name;
  socklen_t length;
  if (const int outcome = ask(fd, name, length); outcome < 0) return failed(outcome);
  return Address::from_sockaddr(reinterpret_cast<const sockaddr*>(&name), length);
}

static_assert(EAGAIN == EWOULDBLOCK);

}  // namespace

std::expected<std::size_t, Error> TcpStream::read(std::span<char> into, Deadline deadline) noexcept {
  spend_budget(kSystemCallCost);
  const Use use(socket_);
  if (!use) return closed();
  // A caller that does not want to wait asks the kernel: a select may have taken the news of what has come since.
  if (drained_ && deadline == Deadline::now()) drained_ = false;
  for (;;) {
    if (drained_) {
      if (auto ready = wait(use.fd(), Direction::readable, deadline); !ready) return std::unexpected(ready.error());
      drained_ = false;
    }
    const ssize_t got = kernel::receive(use.fd(), into.data(), into.size());
    if (got > 0) {
      drained_ = static_cast<std::size_t>(got) < into.size();
      return static_cast<std::size_t>(got);
    }
    if (use.ended()) return closed();
    if (got == 0) return std::unexpected(Error{into.empty() ? ErrorCode::invalid : ErrorCode::end_of_stream});
    if (got == -EINTR) continue;
    if (got != -EAGAIN) return lost(got);
    drained_ = true;
  }
}

std::expected<std::size_t, Error> TcpStream::write_some(std::span<const iovec> from, Deadline deadline,
                                                        bool more_follows) noexcept {
  spend_budget(kSystemCallCost);
  std::size_t wanted = 0;
  for (const iovec& part : from) wanted += part.iov_len;
  const int flags = more_follows ? MSG_MORE : 0;
  const Use use(socket_);
  if (!use) return closed();
  for (;;) {
    if (filled_) {
      if (auto ready = wait(use.fd(), Direction::writable, deadline); !ready) return std::unexpected(ready.error());
      filled_ = false;
    }
    const ssize_t sent = from.size() == 1 ? kernel::send(use.fd(), from[0].iov_base, from[0].iov_len, flags)
                                          : kernel::send_parts(use.fd(), from.data(), from.size(), flags);
    if (sent >= 0) {
      // When the kernel took less than it was given, it will report room (SOCK_NOSPACE).
      filled_ = static_cast<std::size_t>(sent) < wanted;
      if (sent > 0 || wanted == 0) return static_cast<std::size_t>(sent);
      continue;
    }
    if (use.ended()) return closed();
    if (sent == -EINTR) continue;
    if (sent != -EAGAIN) return lost(sent);
    filled_ = true;
  }
}

std::expected<void, Error> TcpStream::write(std::string_view from, Deadline deadline) noexcept {
  return write_all(*this, from, deadline);
}

std::expected<void, Error> TcpStream::writev(std::span<iovec> parts, Deadline deadline) noexcept {
  for (take_sent(parts, 0); !parts.empty();) {
    const auto sent = write_some(parts.first(parts.size() < IOV_MAX ? parts.size() : IOV_MAX), deadline);
    if (!sent) return std::unexpected(sent.error());
    take_sent(parts, *sent);
  }
  return {};
}

std::expected<std::size_t, Error> TcpStream::send_file(int file, std::uint64_t offset, std::size_t count,
                                                       Deadline deadline) noexcept {
  spend_budget(kSystemCallCost);
  const Use use(socket_);
  if (!use) return closed();
  for (;;) {
    if (filled_) {
      if (auto ready = wait(use.fd(), Direction::writable, deadline); !ready) return std::unexpected(ready.error());
      filled_ = false;
    }
    const ssize_t sent = kernel::send_file(use.fd(), file, offset, count);
    // A short count has other causes than a full socket here, so only EAGAIN means wait.
    if (sent > 0) return static_cast<std::size_t>(sent);
    if (sent == 0) return std::unexpected(Error{ErrorCode::end_of_stream});
    if (use.ended()) return closed();
    if (sent == -EINTR) continue;
    if (sent != -EAGAIN) return lost(sent);
    filled_ = true;
  }
}

std::expected<TcpStream, Error> TcpStream::connect(const Address& to, Deadline deadline) noexcept {
  spend_budget(kSystemCallCost);
  TcpStream stream;
  int outcome = begin_connection(to, stream);
  // A Unix socket says at once that its queue is full, where TCP waits.
  while (outcome == -EAGAIN && to.family() == Address::Family::unix_path) {
    if (deadline.passed()) return std::unexpected(Error{ErrorCode::timed_out});
    if (auto slept = sleep_until(std::min(deadline, Deadline::after(std::chrono::milliseconds(5)))); !slept)
      return std::unexpected(slept.error());
    outcome = begin_connection(to, stream);
  }
  // wait may return without readiness.
  while (outcome == -EINPROGRESS) {
    if (auto ready = wait(stream.fd(), Direction::writable, deadline); !ready) return std::unexpected(ready.error());
    outcome = connection_outcome(stream.fd());
  }
  if (outcome < 0) return failed(outcome);
  return stream;
}

bool TcpStream::shutdown_write() noexcept {
  const Use use(socket_);
  return use && ::shutdown(use.fd(), SHUT_WR) == 0;
}

std::expected<Address, Error> TcpStream::local_address() const noexcept {
  return name_of(kernel::local_name, fd());
}
std::expected<Address, Error> TcpStream::peer_address() const noexcept {
  return name_of(kernel::peer_name, fd());
}

}  // namespace coir
