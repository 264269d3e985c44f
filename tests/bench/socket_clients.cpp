// WebSocket clients of scripts/bench streams, the same for each of the servers that are compared.
//
//   socket_clients PORT ...
//
// Reads commands from standard input, one a line, and answers each with one line once it is done. The servers take turns of
// a message, or of a tenth of a second, so that a busy machine is busy for all:
//
//   open N PATH       N more sockets to each, which has answered 101            ->  open TOTAL
//   publish TIMES     has each publish to those of /topic, the next message when all have the last.
//                       ->  published MEDIAN P99 ...   in ms, from the stamp in the message to the last client's byte
//   echo SECONDS      each socket sends 128 bytes, and again as soon as they are back, for so long with each server.
//                       ->  echoed PER_S MESSAGES ...
//
// Ends at end of input. An answer other than 101, an end or a silence of thirty seconds ends it with status 1.

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "measure.h"

namespace {

constexpr int kSilenceMs = 30'000;
constexpr std::size_t kPublished = 64, kStampDigits = 20;
constexpr std::size_t kEcho = 128;
// Heads of a server's frames: lengths up to 125 stand in the second byte, and those of two bytes behind it.
constexpr std::size_t kPublishedHead = 2, kEchoHead = 4;

// Server is one of those that are compared, and its clients.
struct Server {
  int port = 0, poller = -1, publisher = -1;
  std::vector<int> sockets;
  std::vector<std::size_t> have;  // bytes of each one's message that is not whole
  std::vector<double> spans;      // of what was published
  double echoed_ns = 0;
  long echoes = 0;
};

std::vector<Server> servers;
char buffer[64 * 1024];

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "socket_clients: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

void put(int fd, const char* bytes, std::size_t size) {
  if (write(fd, bytes, size) != static_cast<ssize_t>(size)) fail("write");
}

int opened(int port, const char* path) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) fail("connect");
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  char text[512];
  const int size = std::snprintf(text, sizeof text,
                                 "GET %s HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                                 "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
                                 path);
  put(fd, text, static_cast<std::size_t>(size));
  std::size_t used = 0;
  while (used < 4 || std::memcmp(text + used - 4, "\r\n\r\n", 4) != 0) {
    if (used == sizeof text || read(fd, text + used, 1) != 1) fail("no answer to the opening");
    ++used;
  }
  if (std::memcmp(text, "HTTP/1.1 101 ", 13) != 0) fail("the opening is not answered 101");
  return fd;
}

void open_more(Server& server, long count, const char* path) {
  for (long i = 0; i < count; ++i) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u32 = static_cast<std::uint32_t>(server.sockets.size());
    server.sockets.push_back(opened(server.port, path));
    if (epoll_ctl(server.poller, EPOLL_CTL_ADD, server.sockets.back(), &event) != 0) fail("epoll_ctl");
  }
  server.have.resize(server.sockets.size());
}

// hear reads what has come and calls `with` the number of a socket that has as many bytes as a message of that size.
template <class With>
void hear(Server& server, std::size_t size, With with) {
  static epoll_event events[512];
  const int ready = epoll_wait(server.poller, events, 512, kSilenceMs);
  if (ready <= 0) fail("nothing comes");
  for (int i = 0; i < ready; ++i) {
    const std::size_t number = events[i].data.u32;
    const ssize_t got = read(server.sockets[number], buffer, sizeof buffer);
    if (got <= 0) fail("a socket has ended");
    std::size_t& have = server.have[number] += static_cast<std::size_t>(got);
    if (have > size) fail("more than one message has come");
    if (have < size) continue;
    have = 0;
    with(number);
  }
}

void publish(Server& server) {
  if (server.publisher < 0) server.publisher = opened(server.port, "/publish");
  const char ask[] = {'\x81', '\x81', 0, 0, 0, 0, 'p'};
  put(server.publisher, ask, sizeof ask);
  std::size_t left = server.sockets.size();
  while (left > 0) hear(server, kPublishedHead + kPublished, [&](std::size_t) { --left; });
  const auto over = static_cast<double>(bench::wall_ns());
  // The last one's message is in the buffer, for the kernel takes one as small as this whole.
  const std::string stamp(buffer + kPublishedHead, kStampDigits);
  server.spans.push_back((over - std::strtod(stamp.c_str(), nullptr)) / 1e6);
}

void echo(Server& server, double for_ns) {
  char message[8 + kEcho] = {'\x82', static_cast<char>(0x80 | 126), 0, static_cast<char>(kEcho), 1, 2, 3, 4};
  for (const int fd : server.sockets) put(fd, message, sizeof message);
  const auto began = static_cast<double>(bench::wall_ns());
  double took;
  while ((took = static_cast<double>(bench::wall_ns()) - began) < for_ns) {
    hear(server, kEchoHead + kEcho, [&](std::size_t number) {
      ++server.echoes;
      put(server.sockets[number], message, sizeof message);
    });
  }
  server.echoed_ns += took;
  for (std::size_t left = server.sockets.size(); left > 0;)
    hear(server, kEchoHead + kEcho, [&](std::size_t) { --left; });
}

// in_turn calls `with` each server so often, forth and back, so that none always follows the same other.
template <class With>
void in_turn(long times, With with) {
  for (long i = 0; i < times; ++i) {
    for (std::size_t at = 0; at < servers.size(); ++at) with(servers[i % 2 == 0 ? at : servers.size() - 1 - at]);
  }
}

void publish_all(long times) {
  for (Server& each : servers) each.spans.clear();
  in_turn(times, publish);
  std::printf("published");
  for (Server& each : servers) {
    std::sort(each.spans.begin(), each.spans.end());
    std::printf(" %.3f %.3f", each.spans[each.spans.size() / 2], each.spans[each.spans.size() * 99 / 100]);
  }
  std::printf("\n");
}

void echo_all(long seconds) {
  for (Server& each : servers) each.echoed_ns = 0, each.echoes = 0;
  in_turn(seconds * 10, [](Server& each) { echo(each, 1e8); });
  std::printf("echoed");
  for (const Server& each : servers)
    std::printf(" %.0f %ld", static_cast<double>(each.echoes) * 1e9 / each.echoed_ns, each.echoes);
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: socket_clients PORT ...\n", stderr);
    return 2;
  }
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  for (int i = 1; i < argc; ++i) {
    Server& server = servers.emplace_back();
    server.port = std::atoi(argv[i]);
    server.poller = epoll_create1(EPOLL_CLOEXEC);
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  char line[128], path[100];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    const bool open = !servers[0].sockets.empty();
    long count = 0;
    if (std::sscanf(line, "open %ld %99s", &count, path) == 2) {
      for (Server& each : servers) open_more(each, count, path);
      std::printf("open %zu\n", servers[0].sockets.size());
    } else if (std::sscanf(line, "publish %ld", &count) == 1 && count > 0 && open) {
      publish_all(count);
    } else if (std::sscanf(line, "echo %ld", &count) == 1 && count > 0 && open) {
      echo_all(count);
    } else {
      std::fprintf(stderr, "socket_clients: not a command: %s", line);
      return 2;
    }
  }
}
