#include "socket/attempt.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "socket/kernel.h"

namespace coir {

int begin_connection(const Address& to, TcpStream& stream) noexcept {
  const int fd = kernel::stream_socket(to.get()->sa_family);
  if (fd < 0) return fd;
  stream = TcpStream(fd);
  if (to.family() != Address::Family::unix_path) {
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  const int outcome = kernel::connect(fd, to.get(), to.length());
  // An interrupted connect goes on in the background, as one in progress does.
  return outcome == -EINTR ? -EINPROGRESS : outcome;
}

int connection_outcome(int fd) noexcept {
  if (const int error = kernel::socket_error(fd); error < 0) return error;
  sockaddr_storage name;
  socklen_t length;
  return kernel::peer_name(fd, name, length) == -ENOTCONN ? -EINPROGRESS : 0;
}

}  // namespace coir
