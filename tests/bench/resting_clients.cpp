// WebSockets by the thousand of scripts/bench capacity, which rest until they are asked.
//
//   resting_clients ADDRESS PORT
//
// Reads commands from standard input, one a line, and answers each with one line once it is done:
//
//   open N PATH    N more sockets, each with its handshake done; fewer when the server declines  ->  open TOTAL
//   ask            sends a ping and a message on each, a hundred sockets at a time
//                    ->  asked ANSWERED LOST PER_S    ANSWERED: the pong and the same message have come back
//   close          ends all                           ->  closed TOTAL
//
// Ends at end of input. A socket that the server ends is lost.

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

namespace {

constexpr int kSilenceMs = 30'000;
constexpr std::size_t kStep = 100;            // sockets that are opened, or asked, at a time
constexpr std::size_t kPayload = 16;          // of a ping, and of a message: the socket's number
constexpr std::size_t kFrame = 6 + kPayload;  // with a client's mask
constexpr std::size_t kAnswer = 2 * (2 + kPayload);

enum class State { opening, open, asked, lost };

struct Socket {
  int fd = -1;
  State state = State::opening;
  std::size_t have = 0;
  unsigned char room[512];  // the head of the handshake's answer, then the answer to what was asked
};

std::vector<Socket> sockets;
std::size_t busy = 0;  // sockets that something has yet to come for
int poller = -1;
sockaddr_in server{};

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "resting_clients: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

double now_s() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

void lose(Socket& socket) {
  if (socket.state == State::opening || socket.state == State::asked) --busy;
  socket.state = State::lost;
  close(socket.fd);
}

void payload_of(const Socket& socket, unsigned char* into) {
  std::memset(into, 0, kPayload);
  const std::uint64_t number = static_cast<std::uint64_t>(&socket - sockets.data());
  std::memcpy(into, &number, sizeof number);
}

void open_one(const char* path) {
  Socket fresh;
  fresh.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fresh.fd < 0) fail("socket");
  const int on = 1;
  setsockopt(fresh.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (connect(fresh.fd, reinterpret_cast<sockaddr*>(&server), sizeof server) != 0) fail("connect");
  char request[384];
  const int size = std::snprintf(request, sizeof request,
                                 "GET %s HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                                 "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
                                 path);
  if (write(fresh.fd, request, static_cast<std::size_t>(size)) != size) fail("write");
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u32 = static_cast<std::uint32_t>(sockets.size());
  if (epoll_ctl(poller, EPOLL_CTL_ADD, fresh.fd, &event) != 0) fail("epoll_ctl");
  sockets.push_back(fresh);
  ++busy;
}

// ask_one sends a ping and a binary message in one write; a mask of zeros leaves the payload as it is.
void ask_one(Socket& socket) {
  unsigned char frames[2 * kFrame] = {};
  unsigned char* at = frames;
  for (const unsigned char opcode : {0x9, 0x2}) {
    at[0] = 0x80 | opcode;
    at[1] = 0x80 | kPayload;
    payload_of(socket, at + 6);
    at += kFrame;
  }
  socket.have = 0;
  socket.state = State::asked;
  ++busy;
  if (send(socket.fd, frames, sizeof frames, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof frames)) lose(socket);
}

// is_right tells whether the pong and the message, in either order, are what was sent.
bool is_right(const Socket& socket) {
  unsigned char wanted[kPayload];
  payload_of(socket, wanted);
  unsigned opcodes = 0;
  for (std::size_t at = 0; at < kAnswer; at += 2 + kPayload) {
    if (socket.room[at + 1] != kPayload || std::memcmp(socket.room + at + 2, wanted, kPayload) != 0) return false;
    opcodes |= 1u << (socket.room[at] & 0xf);
  }
  return opcodes == (1u << 0xa | 1u << 0x2);
}

void take(Socket& socket) {
  if (socket.state == State::opening) {
    if (socket.have < 4 || std::memcmp(socket.room + socket.have - 4, "\r\n\r\n", 4) != 0) return;
    if (std::memcmp(socket.room, "HTTP/1.1 101 ", 13) != 0) return lose(socket);
    socket.state = State::open;
    --busy;
  } else if (socket.state == State::asked && socket.have >= kAnswer) {
    if (!is_right(socket)) return lose(socket);
    socket.state = State::open;
    --busy;
  }
}

// await_all reads until nothing is owed. Bytes that have not come within the silence are lost.
void await_all() {
  epoll_event events[256];
  while (busy > 0) {
    const int ready = epoll_wait(poller, events, 256, kSilenceMs);
    if (ready < 0 && errno != EINTR) fail("epoll_wait");
    if (ready == 0) {
      for (Socket& socket : sockets) {
        if (socket.state == State::opening || socket.state == State::asked) lose(socket);
      }
    }
    for (int i = 0; i < ready; ++i) {
      Socket& socket = sockets[events[i].data.u32];
      if (socket.state == State::lost) continue;
      const ssize_t size = recv(socket.fd, socket.room + socket.have, sizeof socket.room - socket.have, MSG_DONTWAIT);
      if (size < 0 && errno == EAGAIN) continue;
      if (size <= 0) {
        lose(socket);
        continue;
      }
      socket.have += static_cast<std::size_t>(size);
      take(socket);
    }
  }
}

std::size_t count(State state) {
  return static_cast<std::size_t>(
      std::count_if(sockets.begin(), sockets.end(), [state](const Socket& each) { return each.state == state; }));
}

void open_more(std::size_t wanted, const char* path) {
  while (wanted > 0 && count(State::lost) == 0) {
    const std::size_t step = std::min(wanted, kStep);
    for (std::size_t i = 0; i < step; ++i) open_one(path);
    await_all();
    wanted -= step;
  }
  std::printf("open %zu\n", count(State::open));
}

void ask() {
  const double began = now_s();
  for (std::size_t at = 0; at < sockets.size(); at += kStep) {
    for (std::size_t i = at; i < std::min(at + kStep, sockets.size()); ++i) {
      if (sockets[i].state == State::open) ask_one(sockets[i]);
    }
    await_all();
  }
  const std::size_t answered = count(State::open);
  std::printf("asked %zu %zu %.0f\n", answered, count(State::lost), static_cast<double>(answered) / (now_s() - began));
}

void close_all() {
  const std::size_t total = sockets.size();
  for (Socket& socket : sockets) {
    if (socket.state != State::lost) lose(socket);
  }
  sockets.clear();
  std::printf("closed %zu\n", total);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 || inet_pton(AF_INET, argv[1], &server.sin_addr) != 1) {
    std::fputs("usage: resting_clients ADDRESS PORT\n", stderr);
    return 2;
  }
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  server.sin_family = AF_INET;
  server.sin_port = htons(static_cast<std::uint16_t>(std::atoi(argv[2])));
  poller = epoll_create1(EPOLL_CLOEXEC);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  char line[128], path[100];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    long wanted = 0;
    if (std::sscanf(line, "open %ld %99s", &wanted, path) == 2 && wanted > 0) {
      open_more(static_cast<std::size_t>(wanted), path);
    } else if (std::strcmp(line, "ask\n") == 0) {
      ask();
    } else if (std::strcmp(line, "close\n") == 0) {
      close_all();
    } else {
      std::fprintf(stderr, "resting_clients: not a command: %s", line);
      return 2;
    }
  }
}
