#include "unix_datagrams.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int connect_datagrams(std::string_view name) noexcept {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  errno = EAFNOSUPPORT;
  if ((!name.starts_with('/') && !name.starts_with('@')) || name.size() >= sizeof address.sun_path) return -1;
  memcpy(address.sun_path, name.data(), name.size());
  if (name.front() == '@') address.sun_path[0] = '\0';
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  if (fd < 0 || connect(fd, reinterpret_cast<const sockaddr*>(&address), bytes) == 0) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}
