#pragma once

#include <arpa/inet.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "tests/support/receive_head.h"

namespace coir::test {

// Peer is the server's side of one connection: blocking sockets and nothing of coir, so that it can do what no server
// should.
class Peer {
 public:
  explicit Peer(int fd, unsigned number) noexcept : number(number), fd_(fd) {}

  // hear reads one request's head, and returns it; empty at the end of the connection.
  std::string_view hear() {
    const ssize_t got = receive_head(fd_, heard_);
    return got > 0 ? std::string_view(heard_, static_cast<std::size_t>(got)) : std::string_view();
  }
  // hear_content reads so many bytes behind it, or less where the connection ends before.
  std::string_view hear_content(std::size_t bytes) {
    std::size_t have = 0;
    while (have < bytes && have < sizeof content_) {
      const ssize_t got = ::recv(fd_, content_ + have, std::min(bytes, sizeof content_) - have, 0);
      if (got <= 0) break;
      have += static_cast<std::size_t>(got);
    }
    return {content_, have};
  }
  // say sends all of it; false: the client is gone.
  bool say(std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  // until_gone returns once the client has closed the connection.
  void until_gone() {
    char byte;
    while (::recv(fd_, &byte, 1, 0) > 0) {
    }
  }
  // until_cut_off does without reading.
  void until_cut_off() {
    pollfd entry{.fd = fd_, .events = POLLRDHUP, .revents = 0};
    ::poll(&entry, 1, -1);
  }
  // hang_up ends the connection in good order.
  void hang_up() { ::shutdown(fd_, SHUT_RDWR); }
  void stop_sending() { ::shutdown(fd_, SHUT_WR); }
  // vanish has the kernel drop whatever comes, unacknowledged, as if this machine were gone; come_back ends that.
  bool vanish() {
    sock_filter drop_all = {.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = 0};
    const sock_fprog program = {.len = 1, .filter = &drop_all};
    return ::setsockopt(fd_, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0;
  }
  void come_back() {
    int nothing = 0;
    ::setsockopt(fd_, SOL_SOCKET, SO_DETACH_FILTER, &nothing, sizeof nothing);
  }
  int fd() const { return fd_; }

  const unsigned number;  // of the connection, from 0

 private:
  int fd_;
  char heard_[8192];
  char content_[4096];
};

// ScriptedServer serves each connection on a thread by a script. A thread that has served one accepts the next: to make one
// takes longer than most scripts.
class ScriptedServer {
 public:
  using Script = std::function<void(Peer&)>;

  // `begin` runs first on each thread.
  explicit ScriptedServer(Script script, const char* unix_path = nullptr, void (*begin)() noexcept = nullptr)
      : script_(std::move(script)), begin_(begin) {
    if (unix_path != nullptr) {
      sockaddr_un at{.sun_family = AF_UNIX, .sun_path = {}};
      strncpy(at.sun_path, unix_path, sizeof at.sun_path - 1);
      ::unlink(unix_path);
      fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (::bind(fd_, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) __builtin_trap();
    } else {
      sockaddr_in at{};
      at.sin_family = AF_INET;
      at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (::bind(fd_, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) __builtin_trap();
      socklen_t size = sizeof at;
      ::getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size);
      port_ = ntohs(at.sin_port);
      // Each that is accepted inherits it: a piece waits for no acknowledgement of the one before.
      const int on = 1;
      ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    ::listen(fd_, 64);
    add_thread();
  }
  ~ScriptedServer() {
    ending_.store(true);
    ::shutdown(fd_, SHUT_RDWR);
    // From here on no thread accepts, or is added.
    pthread_mutex_lock(&accepting_);
    pthread_mutex_unlock(&accepting_);
    for (unsigned i = 0; i < threads_; ++i) {
      pthread_mutex_lock(&lock_);
      if (served_[i].fd >= 0) ::shutdown(served_[i].fd, SHUT_RDWR);
      pthread_mutex_unlock(&lock_);
      pthread_join(served_[i].thread, nullptr);
    }
    ::close(fd_);
  }
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  std::uint16_t port() const { return port_; }
  // connections is how many were accepted.
  unsigned connections() const { return accepted_.load(); }
  // url writes the address of a path here, valid until the eighth call after it.
  std::string_view url(const char* path, const char* scheme = "http") const {
    static thread_local char texts[8][256];
    static thread_local unsigned next = 0;
    char* const text = texts[next++ % 8];
    const int size = snprintf(text, sizeof texts[0], "%s://127.0.0.1:%u%s", scheme, port_, path);
    return {text, static_cast<std::size_t>(size)};
  }

 private:
  static constexpr unsigned kMost = 1024;
  struct Served {
    ScriptedServer* server;
    int fd;
    pthread_t thread;
  };

  // add_thread is called by the constructor, and then by the thread that accepts.
  void add_thread() {
    if (threads_ == kMost) return;
    Served& served = served_[threads_++];
    served = {this, -1, {}};
    pthread_create(&served.thread, nullptr, &serve, &served);
  }
  static void* serve(void* one) {
    auto& served = *static_cast<Served*>(one);
    ScriptedServer& server = *served.server;
    if (server.begin_ != nullptr) server.begin_();
    for (unsigned number; server.accept_next(served, number);) {
      Peer peer(served.fd, number);
      server.script_(peer);
      pthread_mutex_lock(&server.lock_);
      ::close(std::exchange(served.fd, -1));
      pthread_mutex_unlock(&server.lock_);
    }
    return nullptr;
  }
  // accept_next waits for its turn to accept, and leaves that to another thread once it has a connection. False: the server
  // ends.
  bool accept_next(Served& served, unsigned& number) {
    ++idle_;
    pthread_mutex_lock(&accepting_);
    --idle_;
    const int fd = ending_.load() ? -1 : ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
    const bool goes_on = fd >= 0 && !ending_.load();
    if (goes_on) {
      number = accepted_++;
      pthread_mutex_lock(&lock_);
      served.fd = fd;
      pthread_mutex_unlock(&lock_);
      if (idle_.load() == 0) add_thread();
    } else if (fd >= 0) {
      ::close(fd);
    }
    pthread_mutex_unlock(&accepting_);
    return goes_on;
  }

  Script script_;
  void (*const begin_)() noexcept;
  pthread_mutex_t accepting_ = PTHREAD_MUTEX_INITIALIZER;  // of the right to accept, and of threads_
  pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;       // of the descriptors below
  int fd_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<bool> ending_{false};
  std::atomic<unsigned> accepted_{0};
  std::atomic<unsigned> idle_{0};  // threads that wait for their turn
  unsigned threads_ = 0;
  const std::unique_ptr<Served[]> served_{new Served[kMost]{}};  // a fiber's stack has no room for them
};

// answer_all answers each request on a connection by the same text.
inline ScriptedServer::Script answer_all(std::string_view text) {
  return [text](Peer& peer) {
    while (!peer.hear().empty() && peer.say(text)) {
    }
  };
}

}  // namespace coir::test
