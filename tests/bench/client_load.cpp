#include "client_load.h"

#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace bench {
namespace {

constexpr int kHoldSilenceMs = 5'000;
constexpr int kAgainSilenceMs = 10'000;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "client_load: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

std::int64_t now_ms() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000LL + now.tv_nsec / 1'000'000;
}

}  // namespace

ClientLoad::ClientLoad(const sockaddr_in& server, const char* target, std::size_t most) : server_(server), most_(most) {
  request_bytes_ = static_cast<std::size_t>(
      std::snprintf(request_, sizeof request_, "GET %s HTTP/1.1\r\nHost: board\r\n\r\n", target));
  if (request_bytes_ >= sizeof request_) fail("the target is too long");
  clients_ = static_cast<Client*>(std::calloc(most, sizeof(Client)));
  poller_ = epoll_create1(EPOLL_CLOEXEC);
  if (clients_ == nullptr || poller_ < 0) fail("start");
}

void ClientLoad::hold(long count, long window) {
  const auto trouble = [&] {
    return counts_.refused + counts_.closed + counts_.lost + counts_.reset + counts_.unconnected > 0;
  };
  while (!trouble()) {
    while (outstanding_ < window && counts_.open + outstanding_ < count && connect_one()) {
    }
    if (outstanding_ == 0) return;
    if (!poll(kHoldSilenceMs)) break;
  }
  // A request that has been sent may still be answered.
  while (outstanding_ > 0 && poll(kHoldSilenceMs)) {
  }
  give_up();
}

void ClientLoad::flood(long count, long seconds) {
  const std::int64_t end = now_ms() + seconds * 1'000;
  for (long started = 0; started < count && connect_one(); ++started) {
    // The first answers arrive while the last clients are still coming.
    if (started % 64 == 0) poll(0);
  }
  for (;;) {
    const std::int64_t left = end - now_ms();
    if (outstanding_ == 0 || left <= 0) break;
    poll(static_cast<int>(left));
  }
  give_up();
}

void ClientLoad::again(long window) {
  look();
  counts_.again = 0;
  for (std::size_t next = 0; next < used_ || outstanding_ > 0;) {
    for (; outstanding_ < window && next < used_; ++next) {
      if (clients_[next].state == State::idle) ask(clients_[next]);
    }
    if (outstanding_ > 0 && !poll(kAgainSilenceMs)) give_up();
  }
}

void ClientLoad::look() {
  while (poll(0)) {
  }
}

void ClientLoad::close() {
  for (std::size_t i = 0; i < used_; ++i) {
    if (clients_[i].state != State::unused) ::close(clients_[i].fd);
    clients_[i] = Client();
  }
  used_ = 0;
  outstanding_ = 0;
  counts_ = Counts();
}

bool ClientLoad::connect_one() {
  if (used_ == most_) return false;
  Client& client = clients_[used_];
  client.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (client.fd < 0) fail("socket");
  const int on = 1;
  setsockopt(client.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP;
  event.data.u32 = static_cast<std::uint32_t>(used_);
  client.state = State::connecting;
  ++used_;
  ++outstanding_;
  if (connect(client.fd, reinterpret_cast<sockaddr*>(&server_), sizeof server_) != 0 && errno != EINPROGRESS) {
    // No port is left, or no route: the machine of the clients is the limit, and no figure may hide that.
    fail("connect");
  }
  if (epoll_ctl(poller_, EPOLL_CTL_ADD, client.fd, &event) != 0) fail("epoll_ctl");
  return true;
}

void ClientLoad::ask(Client& client) {
  if (client.state == State::idle) {
    client.state = State::again;
    ++outstanding_;
    --counts_.open;
  } else {
    client.state = State::first;
  }
  client.head_bytes = 0;
  client.head_seen = false;
  if (send(client.fd, request_, request_bytes_, MSG_NOSIGNAL) != static_cast<ssize_t>(request_bytes_)) {
    ended(client, false);
  }
}

bool ClientLoad::poll(int timeout_ms) {
  epoll_event events[256];
  const int ready = epoll_wait(poller_, events, 256, timeout_ms);
  if (ready < 0 && errno != EINTR) fail("epoll_wait");
  for (int i = 0; i < ready; ++i) handle(clients_[events[i].data.u32], events[i].events);
  return ready > 0;
}

void ClientLoad::handle(Client& client, std::uint32_t events) {
  if (client.state == State::unused) return;
  if (client.state == State::connecting) {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(client.fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error == ETIMEDOUT || error == EHOSTUNREACH) return release(client, counts_.unconnected);
    if (error != 0) return release(client, counts_.reset);
    epoll_event event{};
    event.events = EPOLLIN | EPOLLRDHUP;
    event.data.u32 = static_cast<std::uint32_t>(&client - clients_);
    epoll_ctl(poller_, EPOLL_CTL_MOD, client.fd, &event);
    ask(client);
    if (client.state == State::unused) return;
  }
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) receive(client);
}

void ClientLoad::receive(Client& client) {
  char bytes[4096];
  const ssize_t size = recv(client.fd, bytes, sizeof bytes, 0);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) return ended(client, size == 0);
  // An answer that nobody asked for breaks the connection.
  if (client.state == State::idle) return ended(client, false);
  if (take_in(client, bytes, static_cast<std::size_t>(size))) answered(client);
}

bool ClientLoad::take_in(Client& client, const char* bytes, std::size_t count) {
  if (client.head_seen) return (client.missing -= static_cast<long>(count)) <= 0;
  const std::size_t room = sizeof client.head - 1 - client.head_bytes;
  const std::size_t taken = count < room ? count : room;
  std::memcpy(client.head + client.head_bytes, bytes, taken);
  client.head_bytes = static_cast<std::uint16_t>(client.head_bytes + taken);
  client.head[client.head_bytes] = '\0';
  const char* const end = std::strstr(client.head, "\r\n\r\n");
  if (end == nullptr) {
    if (taken < count) fail("an answer's head of more than 499 bytes");
    return false;
  }
  client.head_seen = true;
  client.status = static_cast<std::uint16_t>(std::strtoul(client.head + sizeof "HTTP/1.1", nullptr, 10));
  const char* const length = strcasestr(client.head, "\r\ncontent-length:");
  const long body = length != nullptr && length < end ? std::strtol(length + 17, nullptr, 10) : 0;
  const long body_here = client.head_bytes - (end + 4 - client.head) + static_cast<long>(count - taken);
  client.missing = body - body_here;
  return client.missing <= 0;
}

void ClientLoad::answered(Client& client) {
  const bool first = client.state == State::first;
  if (client.status != 200) return release(client, first ? counts_.refused : counts_.declined);
  client.state = State::idle;
  --outstanding_;
  ++counts_.open;
  if (!first) ++counts_.again;
}

void ClientLoad::ended(Client& client, bool cleanly) {
  switch (client.state) {
    case State::idle:
      --counts_.open;
      ++outstanding_;
      return release(client, cleanly ? counts_.closed : counts_.lost);
    case State::again:
      return release(client, counts_.lost);
    default:
      return release(client, cleanly ? counts_.refused : counts_.reset);
  }
}

// release ends an outstanding connection and counts it.
void ClientLoad::release(Client& client, long& count) {
  ::close(client.fd);
  client.state = State::unused;
  --outstanding_;
  ++count;
}

// give_up ends the outstanding connections.
void ClientLoad::give_up() {
  for (std::size_t i = 0; i < used_ && outstanding_ > 0; ++i) {
    Client& client = clients_[i];
    if (!outstanding(client)) continue;
    if (client.state == State::connecting) {
      release(client, counts_.unconnected);
    } else {
      release(client, client.state == State::first ? counts_.unanswered : counts_.lost);
    }
  }
}

}  // namespace bench
