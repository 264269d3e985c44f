// Thousands of clients at once, all asking all the time: the client of scripts/bench modes and echo.
//
//   swarm http PORT CLIENTS SECONDS SERVER    keep-alive connections, each with one request under way; for so long
//   swarm echo PORT CLIENTS ROUNDS SERVER     64 bytes to and fro, so often on each connection, once all are open
//
// Prints "answers N", "unserved N" (clients that never got an answer), "p99_ms X" (of the answers), "wall_s X"
// and "rss_kb N", what is resident of the process SERVER while all are connected. The C
// library alone. Ends with status 1 if echo's clients are not all served in 60 s.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

struct Client {
  int fd = -1;
  bool connected = false;
  std::size_t heard = 0;  // of the answer under way
  std::int64_t asked = 0;
  long answers = 0;
};

std::vector<Client> clients;
std::vector<float> delays;  // ms
int poller = -1;
char question[256];
std::size_t question_bytes = 0;
std::size_t answer_bytes = 0;  // 0: not known yet

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "swarm: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

void ask(Client& client) {
  client.heard = 0;
  client.asked = now_ns();
  if (send(client.fd, question, question_bytes, MSG_NOSIGNAL) != static_cast<ssize_t>(question_bytes)) fail("send");
}

// open begins to connect; a backlog that is full keeps the kernel trying.
void open(Client& client, const sockaddr_in& server) {
  client.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (client.fd < 0) fail("socket");
  const int on = 1;
  setsockopt(client.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (connect(client.fd, reinterpret_cast<const sockaddr*>(&server), sizeof server) != 0 && errno != EINPROGRESS)
    fail("connect");
  epoll_event event{};
  event.events = EPOLLOUT;
  event.data.u32 = static_cast<std::uint32_t>(&client - clients.data());
  if (epoll_ctl(poller, EPOLL_CTL_ADD, client.fd, &event) != 0) fail("epoll_ctl");
}

void now_connected(Client& client) {
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(client.fd, SOL_SOCKET, SO_ERROR, &error, &size);
  errno = error;
  if (error != 0) fail("connect");
  client.connected = true;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u32 = static_cast<std::uint32_t>(&client - clients.data());
  epoll_ctl(poller, EPOLL_CTL_MOD, client.fd, &event);
}

// hear tells whether an answer is whole. The first answer of all tells how long each is.
bool hear(Client& client) {
  char buffer[4096];
  const ssize_t got = recv(client.fd, buffer, sizeof buffer, 0);
  if (got < 0 && errno == EAGAIN) return false;
  if (got == 0) errno = ECONNRESET;
  if (got <= 0) fail("the server ended a connection");
  client.heard += static_cast<std::size_t>(got);
  if (answer_bytes == 0 && buffer[got - 1] == '\n') answer_bytes = client.heard;
  if (answer_bytes == 0 || client.heard < answer_bytes) return false;
  ++client.answers;
  delays.push_back(static_cast<float>(now_ns() - client.asked) / 1e6f);
  return true;
}

void print_resident(const char* process) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%s/smaps_rollup", process);
  std::FILE* const file = std::fopen(path, "r");
  char line[256];
  long kb = 0;
  while (file != nullptr && std::fgets(line, sizeof line, file) != nullptr) {
    if (std::sscanf(line, "Rss: %ld", &kb) == 1) break;
  }
  std::printf("rss_kb %ld\n", kb);
}

void print(std::int64_t began) {
  const double wall = static_cast<double>(now_ns() - began) / 1e9;
  const long unserved =
      std::count_if(clients.begin(), clients.end(), [](const Client& each) { return each.answers == 0; });
  std::printf("answers %zu\nunserved %ld\nwall_s %.3f\n", delays.size(), unserved, wall);
  if (delays.empty()) return;
  const auto at = delays.begin() + static_cast<long>(delays.size() * 99 / 100);
  std::nth_element(delays.begin(), at, delays.end());
  std::printf("p99_ms %.2f\n", static_cast<double>(*at));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fputs("usage: swarm http|echo PORT CLIENTS SECONDS|ROUNDS SERVER\n", stderr);
    return 2;
  }
  const bool echo = std::strcmp(argv[1], "echo") == 0;
  const long amount = std::atol(argv[4]);
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  sockaddr_in server{};
  server.sin_family = AF_INET;
  server.sin_port = htons(static_cast<std::uint16_t>(std::atoi(argv[2])));
  server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (echo) {
    std::memset(question, 'e', 64);
    question_bytes = answer_bytes = 64;
  } else {
    question_bytes = static_cast<std::size_t>(
        std::snprintf(question, sizeof question, "GET / HTTP/1.1\r\nHost: 127.0.0.1:%s\r\n\r\n", argv[2]));
  }
  poller = epoll_create1(EPOLL_CLOEXEC);
  clients.resize(static_cast<std::size_t>(std::atol(argv[3])));
  for (Client& client : clients) open(client, server);

  std::int64_t began = now_ns();
  std::size_t connected = 0;
  std::size_t done = 0;
  const std::int64_t patience = began + 60'000'000'000LL;
  epoll_event events[256];
  while (echo ? done < clients.size() : now_ns() < began + amount * 1'000'000'000LL) {
    if (echo && now_ns() > patience) break;
    const int ready = epoll_wait(poller, events, 256, 100);
    for (int i = 0; i < ready; ++i) {
      Client& client = clients[events[i].data.u32];
      if (!client.connected) {
        now_connected(client);
        ++connected;
        if (!echo) ask(client);
        if (echo && connected == clients.size()) {
          began = now_ns();
          for (Client& each : clients) ask(each);
        }
      } else if (hear(client)) {
        if (echo && client.answers == amount) {
          ++done;
        } else {
          ask(client);
        }
      }
    }
  }
  print(began);
  print_resident(argv[5]);
  return echo && done < clients.size() ? 1 : 0;
}
