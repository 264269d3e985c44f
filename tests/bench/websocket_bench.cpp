// usage: websocket_bench idle|subscribed|fiber|echo|publish [SOCKETS]
//
// A server with one worker and, in a process of their own, its clients; figures on standard output:
//
//   idle, subscribed   ws_idle_bytes: resident bytes of a resting socket, its connection included
//   fiber              ws_fiber_bytes: the same of a fiber that receives
//   echo               ws_echo_per_s: messages of 128 bytes over 64 sockets, sent again as soon as they come back
//   publish            publish_last_ms, publish_last_p99_ms: from publish to the last client's byte
#include <coir/fiber.h>
#include <coir/http/resting_sockets.h>
#include <coir/http/server.h>
#include <coir/http/topic.h>
#include <coir/http/websocket_server.h>
#include <coir/runtime.h>
#include <coir/wait.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string_view>

using namespace coir;
using namespace coir::http;

namespace {

constexpr std::size_t kMostSockets = 20'000;
constexpr std::size_t kPayload = 64;  // of what is published
constexpr int kRounds = 41;
constexpr std::size_t kEcho = 128;

struct Program {
  struct State {};
  Topic all;
  bool joins = false;
  void opened(RestingSocket& socket, State&) {
    if (joins && !socket.subscribe(all)) abort();
  }
  void message(RestingSocket& socket, State&, const WebSocketMessage& message) {
    static_cast<void>(socket.send_binary(message.bytes));
  }
};

RestingSockets<Program>* g_sockets;

void resting(Exchange& exchange) {
  static_cast<void>(g_sockets->accept(exchange));
}

void reading(Exchange& exchange) {
  auto socket = accept_websocket(exchange);
  if (!socket) return;
  while (auto message = socket->receive()) {
    if (!socket->send_binary(message->bytes)) return;
  }
}

std::size_t resident() {
  char text[128];
  const int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  const ssize_t size = read(fd, text, sizeof text - 1);
  close(fd);
  text[size > 0 ? size : 0] = '\0';
  const char* second = strchr(text, ' ');
  return second != nullptr ? strtoul(second, nullptr, 10) * 4096 : 0;
}

void die(const char* what) {
  perror(what);
  exit(1);
}

int connected(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to = {.sin_family = AF_INET,
                    .sin_port = htons(static_cast<uint16_t>(port)),
                    .sin_addr = {htonl(INADDR_LOOPBACK)},
                    .sin_zero = {}};
  if (fd < 0 || connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) die("connect");
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return fd;
}

constexpr std::string_view kOpening =
    "GET / HTTP/1.1\r\nHost: t\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

// The clients' process is told what to do by a byte each, and answers by eight.
struct Clients {
  int port, orders, answers;
  int sockets[kMostSockets];
  std::size_t count;

  void answer(std::uint64_t number) const {
    if (write(answers, &number, sizeof number) != sizeof number) die("answer");
  }
  void open() {
    for (std::size_t i = 0; i < count; ++i) {
      sockets[i] = connected(port);
      if (write(sockets[i], kOpening.data(), kOpening.size()) < 0) die("write");
      char head[512];
      std::size_t used = 0;
      while (used < 4 || memcmp(head + used - 4, "\r\n\r\n", 4) != 0) {
        if (read(sockets[i], head + used, 1) != 1) die("read");
        ++used;
      }
    }
    answer(1);
  }
  int watch() const {
    const int epoll = epoll_create1(0);
    for (std::size_t i = 0; i < count; ++i) {
      epoll_event event = {.events = EPOLLIN, .data = {.u32 = static_cast<uint32_t>(i)}};
      epoll_ctl(epoll, EPOLL_CTL_ADD, sockets[i], &event);
    }
    return epoll;
  }
  // hear answers with the time at which the last byte of a published message has come.
  void hear() const {
    const int epoll = watch();
    for (int round = 0; round < kRounds; ++round) {
      std::size_t left = count * (kPayload + 2);
      while (left != 0) {
        epoll_event events[256];
        const int ready = epoll_wait(epoll, events, 256, -1);
        for (int i = 0; i < ready; ++i) {
          char bytes[4096];
          const ssize_t got = read(sockets[events[i].data.u32], bytes, sizeof bytes);
          if (got <= 0) die("hear");
          left -= static_cast<std::size_t>(got);
        }
      }
      answer(static_cast<std::uint64_t>(monotonic_ns()));
    }
  }
  // echo answers with the number of messages in the time.
  void echo(std::int64_t for_ns) const {
    const int epoll = watch();
    char message[8 + kEcho] = {
        static_cast<char>(0x82), static_cast<char>(0x80 | 126), 0, static_cast<char>(kEcho), 1, 2, 3, 4};
    static std::size_t heard[kMostSockets];
    for (std::size_t i = 0; i < count; ++i) {
      if (write(sockets[i], message, sizeof message) < 0) die("write");
    }
    const std::int64_t end = monotonic_ns() + for_ns;
    std::uint64_t messages = 0;
    while (monotonic_ns() < end) {
      epoll_event events[64];
      const int ready = epoll_wait(epoll, events, 64, 1000);
      for (int i = 0; i < ready; ++i) {
        const std::size_t at = events[i].data.u32;
        char bytes[4096];
        const ssize_t got = read(sockets[at], bytes, sizeof bytes);
        if (got <= 0) die("echo");
        heard[at] += static_cast<std::size_t>(got);
        if (heard[at] < kEcho + 4) continue;
        heard[at] -= kEcho + 4;
        ++messages;
        if (write(sockets[at], message, sizeof message) < 0) die("write");
      }
    }
    answer(messages);
  }
  [[noreturn]] void run() {
    char order;
    while (read(orders, &order, 1) == 1) {
      if (order == 'o') open();
      if (order == 'h') hear();
      if (order == 'e') echo(2'000'000'000);
    }
    _exit(0);
  }
};

Clients g_clients;
int g_orders, g_answers;

void order(char what) {
  if (write(g_orders, &what, 1) != 1) die("order");
}

std::uint64_t answered() {
  std::uint64_t number;
  while (read(g_answers, &number, sizeof number) != sizeof number) {
    if (!wait(g_answers, Direction::readable)) die("answered");
  }
  return number;
}

int measure(std::string_view what) {
  const bool fibers = what == "fiber", publishes = what == "publish";
  const std::size_t count = g_clients.count;
  Program program;
  program.joins = publishes || what == "subscribed";
  auto sockets = RestingSockets<Program>::create(program, {.max_sockets = count, .max_subscriptions = count});
  if (!sockets) return 1;
  g_sockets = &*sockets;
  auto server = Server::create({.handler = fibers ? reading : resting,
                                .max_connections = count + 16,
                                .max_active = fibers ? count + 16 : 256,
                                .handler_stack = 8_KiB});
  auto listener = TcpListener::listen(*Address::parse("127.0.0.1:0"));
  if (!server || !listener) return 1;
  g_clients.port = listener->local_address().port();
  int orders[2], answers[2];
  if (pipe(orders) != 0 || pipe(answers) != 0) die("pipe");
  const pid_t child = fork();
  if (child == 0) {
    g_clients.orders = orders[0];
    g_clients.answers = answers[1];
    close(orders[1]);
    g_clients.run();
  }
  g_orders = orders[1];
  g_answers = answers[0];
  fcntl(g_answers, F_SETFL, O_NONBLOCK);
  close(orders[0]);
  if (!server->add(std::move(*listener))) return 1;
  const auto ran = coir::run_until_idle({.workers = 1}, [&] {
    if (!server->start()) return;
    yield();
    const std::size_t before = resident();
    order('o');
    answered();
    static_cast<void>(sleep(std::chrono::milliseconds(300)));
    const double each = static_cast<double>(resident() - before) / static_cast<double>(count);
    if (publishes) {
      double times[kRounds];
      order('h');
      char payload[kPayload];
      memset(payload, 'x', sizeof payload);
      for (double& time : times) {
        const std::int64_t from = monotonic_ns();
        const Published sent = program.all.publish_text({payload, sizeof payload});
        if (sent.sent != count) die("publish");
        const std::int64_t published = monotonic_ns();
        time = static_cast<double>(static_cast<std::int64_t>(answered()) - from) / 1e6;
        if (getenv("COIR_BENCH_LOUD"))
          fprintf(stderr, "publish took %.2f of %.2f ms\n", static_cast<double>(published - from) / 1e6, time);
      }
      qsort(times, kRounds, sizeof *times, [](const void* a, const void* b) {
        const double left = *static_cast<const double*>(a), right = *static_cast<const double*>(b);
        return (left > right) - (left < right);
      });
      printf("publish_last_ms: %.2f ms\npublish_last_p99_ms: %.2f ms\n", times[kRounds / 2], times[kRounds - 1]);
    } else if (what == "echo") {
      order('e');
      printf("ws_echo_per_s: %.0f 1/s\n", static_cast<double>(answered()) / 2);
    } else {
      printf("ws_%s_bytes: %.1f bytes\n", fibers ? "fiber" : "idle", each);
    }
    fflush(stdout);
    static_cast<void>(server->stop(Deadline::after(std::chrono::seconds(20))));
  });
  close(g_orders);
  waitpid(child, nullptr, 0);
  return ran ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fputs("usage: websocket_bench idle|subscribed|fiber|echo|publish [SOCKETS]\n", stderr);
    return 2;
  }
  const std::string_view what = argv[1];
  g_clients.count = argc > 2 ? strtoul(argv[2], nullptr, 10) : what == "echo" ? 64 : what == "publish" ? 4000 : 5000;
  if (g_clients.count > kMostSockets) g_clients.count = kMostSockets;
  rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  return measure(what);
}
