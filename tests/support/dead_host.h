#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>

namespace coir::test {

// DeadHost is an address of this machine that never answers: its listener's queue is full, and the kernel drops what
// comes. At port 0 it has one of the kernel's choice.
class DeadHost {
 public:
  DeadHost(const char* host, std::uint16_t port) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    inet_pton(AF_INET, host, &at.sin_addr);
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    usable_ = bind(listener_, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0 && listen(listener_, 0) == 0;
    at.sin_port = htons(this->port());
    // The first fills the queue, and is waited for: until it is there others might have its place.
    int type = SOCK_STREAM | SOCK_CLOEXEC;
    for (int& filler : fillers_) {
      filler = socket(AF_INET, type, 0);
      static_cast<void>(::connect(filler, reinterpret_cast<const sockaddr*>(&at), sizeof at));
      type |= SOCK_NONBLOCK;
    }
  }
  ~DeadHost() {
    for (const int filler : fillers_) close(filler);
    close(listener_);
  }
  bool usable() const { return usable_; }
  std::uint16_t port() const {
    sockaddr_in at{};
    socklen_t size = sizeof at;
    getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size);
    return ntohs(at.sin_port);
  }

 private:
  int listener_;
  int fillers_[4];
  bool usable_;
};

}  // namespace coir::test
