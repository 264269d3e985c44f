// A bare epoll loop that sends back what it is sent: the bound of scripts/bench echo. Prints its port, serves until it is ended.
// The C library alone.

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>

int main() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(listener, 4096) != 0) return 1;
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  const int on = 1;
  setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  std::printf("port: %u\n", ntohs(address.sin_port));
  std::fflush(stdout);
  const int poller = epoll_create1(0);
  epoll_event event{.events = EPOLLIN, .data = {.fd = listener}};
  epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event);
  epoll_event events[256];
  char piece[512];
  for (;;) {
    const int ready = epoll_wait(poller, events, 256, -1);
    for (int i = 0; i < ready; ++i) {
      const int fd = events[i].data.fd;
      if (fd == listener) {
        const int accepted = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK);
        if (accepted < 0) continue;
        event = {.events = EPOLLIN, .data = {.fd = accepted}};
        epoll_ctl(poller, EPOLL_CTL_ADD, accepted, &event);
        continue;
      }
      const ssize_t got = read(fd, piece, sizeof piece);
      if (got <= 0 || write(fd, piece, static_cast<std::size_t>(got)) != got) close(fd);
    }
  }
}
