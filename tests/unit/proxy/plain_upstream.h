#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string_view>

#include "tests/support/faults.h"
#include "tests/support/until.h"

namespace coir::test {

// PlainUpstream serves each connection on a thread of its own, by blocking sockets whose calls never fail. `serve` closes
// nothing: when it returns the connection ends.
class PlainUpstream {
 public:
  using Serve = void (*)(int fd);

  explicit PlainUpstream(Serve serve) : serve_(serve), fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::bind(fd_, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) __builtin_trap();
    socklen_t size = sizeof at;
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size);
    port_ = ntohs(at.sin_port);
    // Each that is accepted inherits it.
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::listen(fd_, 64);
    pthread_create(&thread_, nullptr, &accept_all, this);
  }
  ~PlainUpstream() {
    ::shutdown(fd_, SHUT_RDWR);
    pthread_join(thread_, nullptr);
    until([] { return serving_ == 0; });
    ::close(fd_);
  }
  PlainUpstream(const PlainUpstream&) = delete;
  PlainUpstream& operator=(const PlainUpstream&) = delete;
  std::uint16_t port() const { return port_; }

  static bool say(int fd, std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  // hear reads so many bytes.
  static bool hear(int fd, void* into, std::size_t bytes) {
    for (std::size_t have = 0; have < bytes;) {
      const ssize_t got = ::recv(fd, static_cast<char*>(into) + have, bytes - have, 0);
      if (got <= 0) return false;
      have += static_cast<std::size_t>(got);
    }
    return true;
  }
  // pause returns once the other side has had time to let the response rest, or is gone.
  static void pause(int fd) {
    pollfd entry{.fd = fd, .events = POLLRDHUP, .revents = 0};
    ::poll(&entry, 1, 5);
  }

 private:
  struct Accepted {
    Serve serve;
    int fd;
  };

  static void* accept_all(void* given) {
    spare_this_thread();
    const auto& self = *static_cast<PlainUpstream*>(given);
    for (;;) {
      const int fd = ::accept4(self.fd_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return nullptr;
      ++serving_;
      pthread_t thread;
      pthread_create(&thread, nullptr, &serve_one, new Accepted{self.serve_, fd});
      pthread_detach(thread);
    }
  }
  static void* serve_one(void* given) {
    spare_this_thread();
    auto* const accepted = static_cast<Accepted*>(given);
    accepted->serve(accepted->fd);
    ::close(accepted->fd);
    delete accepted;
    --serving_;
    return nullptr;
  }

  static inline std::atomic<int> serving_ = 0;
  const Serve serve_;
  const int fd_;
  std::uint16_t port_ = 0;
  pthread_t thread_{};
};

}  // namespace coir::test
