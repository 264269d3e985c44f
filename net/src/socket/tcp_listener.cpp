#include <coir/budget.h>
#include <coir/tcp.h>
#include <coir/wait.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "socket/kernel.h"
#include "socket/orphaned_path.h"

namespace coir {
namespace {

// Errors (negative) of accept(2) that concern only the connection to be accepted, or are transient (its manual page:
// "treat them like EAGAIN by retrying").
bool concerns_one_connection(int number) noexcept {
  switch (-number) {
    case EINTR:
    case ECONNABORTED:
    case EPROTO:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH:
    case EPERM:
      return true;
    default:
      return false;
  }
}

bool lacks_family(int number) noexcept {
  return number == EAFNOSUPPORT || number == EADDRNOTAVAIL || number == EPROTONOSUPPORT;
}

// open_bound returns a listening socket or -errno.
int open_bound(const Address& at, const TcpListener::Options& options) noexcept {
  const int fd = kernel::stream_socket(at.get()->sa_family);
  if (fd < 0) return fd;
  const int on = 1;
  if (at.family() == Address::Family::unix_path) {
    if (path_is_orphaned(at, SOCK_STREAM)) ::unlink(at.unix_path().data());
  } else {
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (options.unsent_bytes > 0) {
      ::setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &options.unsent_bytes, sizeof options.unsent_bytes);
    }
    if (options.without_delay) ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    // For both families: the kernel keeps one mark.
    if (options.before_address) ::setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &on, sizeof on);
  }
  if (at.family() == Address::Family::ipv6) {
    const int only = at.is_any() ? 0 : 1;
    ::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only);
  }
  if (::bind(fd, at.get(), at.length()) != 0 || ::listen(fd, options.backlog) != 0) {
    const int number = errno;
    ::close(fd);
    return -number;
  }
  return fd;
}

}  // namespace

std::expected<TcpStream, Error> TcpListener::accept(Deadline deadline) noexcept {
  spend_budget(kSystemCallCost);
  const detail::UsedDescriptor::Use use(socket_);
  if (!use) return std::unexpected(Error{ErrorCode::closed});
  for (;;) {
    const int fd = kernel::accept(use.fd());
    if (fd >= 0) return TcpStream(fd);
    if (use.ended()) return std::unexpected(Error{ErrorCode::closed});
    if (concerns_one_connection(fd)) continue;
    // The kernel takes a descriptor before it looks for a connection: without one it does not say whether there is any.
    const bool none = fd == -EAGAIN || ((fd == -EMFILE || fd == -ENFILE) && !kernel::is_readable(use.fd()));
    if (!none) return std::unexpected(Error::from_errno(-fd));
    // That was the look, and nothing else runs in it: the listener may not be another one behind it.
    if (deadline == Deadline::now()) return std::unexpected(Error{ErrorCode::timed_out});
    if (auto ready = wait(use.fd(), Direction::readable, deadline); !ready) return std::unexpected(ready.error());
  }
}

std::expected<TcpListener, Error> TcpListener::listen(const Address& at, Options options) noexcept {
  Address bound = at;
  int fd = open_bound(bound, options);
  if (fd < 0 && at.is_any() && at.family() == Address::Family::ipv6 && lacks_family(-fd)) {
    bound = at.as_ipv4_any();
    fd = open_bound(bound, options);
  }
  if (fd < 0) {
    return std::unexpected(-fd == EAFNOSUPPORT ? Error{ErrorCode::unsupported, -fd} : Error::from_errno(-fd));
  }
  TcpListener listener;
  listener.socket_ = detail::UsedDescriptor(fd);
  listener.address_ = bound;
  if (bound.family() != Address::Family::unix_path && bound.port() == 0) {
    sockaddr_storage name;
    socklen_t length;
    if (const int outcome = kernel::local_name(fd, name, length); outcome < 0)
      return std::unexpected(Error::from_errno(-outcome));
    const Address chosen = Address::from_sockaddr(reinterpret_cast<const sockaddr*>(&name), length);
    listener.address_ = bound.with_port(chosen.port());
  }
  return listener;
}

TcpListener& TcpListener::operator=(TcpListener&& other) noexcept {
  if (this != &other) {
    close();
    socket_ = std::move(other.socket_);
    address_ = other.address_;
  }
  return *this;
}

void TcpListener::close() noexcept {
  // The path first: whoever listens on it next must not lose it.
  const std::string_view path = address_.unix_path();
  if (is_open() && !path.empty() && path[0] != '\0') ::unlink(path.data());
  socket_.close();
}

}  // namespace coir
