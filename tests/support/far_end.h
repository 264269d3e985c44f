#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

namespace coir::test {

// far_end is the descriptor of this process that is the other end of the connection of `end`.
inline int far_end(int end) {
  sockaddr_in own{}, other{};
  socklen_t size = sizeof own;
  if (getsockname(end, reinterpret_cast<sockaddr*>(&own), &size) != 0) return -1;
  for (int fd = 0; fd < 1024; ++fd) {
    size = sizeof other;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&other), &size) == 0 && other.sin_family == AF_INET &&
        other.sin_port == own.sin_port) {
      return fd;
    }
  }
  return -1;
}

// far_option is the value of an option of that other end, or -1.
inline int far_option(int end, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  return getsockopt(far_end(end), level, name, &value, &size) == 0 ? value : -1;
}

}  // namespace coir::test
