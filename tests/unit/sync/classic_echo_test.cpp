#include <CppUTest/TestHarness.h>
#include <arpa/inet.h>
#include <coir/fiber.h>
#include <coir/runtime.h>
#include <coir/wait.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "tests/support/pipe.h"
#include "tests/support/scale.h"
#include "tests/support/until.h"

namespace classic_echo_test {

using coir::close_fd;
using coir::Deadline;
using coir::Direction;
using coir::Fiber;
using coir::run_until_idle;
using coir::spawn;
using coir::operator""_KiB;
using coir::test::count_fds;
using coir::test::full;
using coir::test::scaled;
using coir::test::until;

namespace {

const int kConnections = full() ? scaled({10'000, 2'000, 1'000, 1'000}) : scaled({2'000, 1'000, 1'000, 1'000});
constexpr int kMessages = 100;
constexpr int kHotStacks = 256;
constexpr int kMostAtOnce = scaled({4'000, 1'000, 400, 250});

struct Message {
  int connection, number;
  bool operator==(const Message&) const = default;
};

// wave_size is how many connections fit the limit of descriptors at once, both ends being here.
int wave_size() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<int>(std::min<rlim_t>(kMostAtOnce, (limit.rlim_cur - 64) / 2));
}

bool read_all(int fd, Message& message) {
  auto* const bytes = reinterpret_cast<char*>(&message);
  for (std::size_t done = 0; done < sizeof message;) {
    const ssize_t n = read(fd, bytes + done, sizeof message - done);
    if (n == 0) return false;
    if (n > 0) {
      done += static_cast<std::size_t>(n);
    } else if (errno != EAGAIN || !coir::wait(fd, Direction::readable)) {
      return false;
    }
  }
  return true;
}

// Eight bytes fit a socket's buffer whenever it has room at all.
bool write_all(int fd, const Message& message) {
  for (;;) {
    if (write(fd, &message, sizeof message) == sizeof message) return true;
    if (errno != EAGAIN || !coir::wait(fd, Direction::writable)) return false;
  }
}

struct Echo {
  int listener = -1;
  sockaddr_in address{};
  std::atomic<int> served{0}, complete{0}, lost{0};

  bool listen_on_loopback() {
    listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    return bind(listener, reinterpret_cast<sockaddr*>(&address), length) == 0 && listen(listener, 4'096) == 0 &&
           getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  }

  void accept_all() {
    for (int accepted = 0; accepted < kConnections;) {
      const int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd >= 0) {
        ++accepted;
        spawn({.name = "server", .stack = 8_KiB}, [this, fd] {
          for (Message message; read_all(fd, message);) lost += !write_all(fd, message);
          close_fd(fd);
          ++served;
        }).detach();
      } else if (!coir::wait(listener, Direction::readable)) {
        return;
      }
    }
  }

  // Clients come from addresses of their own, so that many runs in a row do not use up the ports of one.
  int connect_from(int connection) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    sockaddr_in source{};
    source.sin_family = AF_INET;
    source.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + static_cast<std::uint32_t>(connection % 250));
    const int one = 1;
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (bind(fd, reinterpret_cast<sockaddr*>(&source), sizeof source) != 0) return fd;
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 && errno == EINPROGRESS) {
      static_cast<void>(coir::wait(fd, Direction::writable));
    }
    return fd;
  }

  void call(int connection) {
    const int fd = connect_from(connection);
    int echoed = 0;
    for (int i = 0; i < kMessages; ++i) {
      const Message sent{connection, i};
      Message got{};
      if (!write_all(fd, sent) || !read_all(fd, got) || got != sent) break;
      ++echoed;
    }
    close_fd(fd);
    complete += echoed == kMessages;
    lost += echoed != kMessages;
  }
};

}  // namespace

TEST_GROUP(ClassicEcho) {};

TEST(ClassicEcho, thousands_of_connections_echo_a_hundred_messages_each_and_lose_none) {
  const int wave = wave_size();
  const int fds = count_fds();
  Echo echo;
  coir::RuntimeStats end{};
  const auto ended = run_until_idle({.workers = 2, .hot_stacks = kHotStacks}, [&] {
    if (!echo.listen_on_loopback()) return;
    Fiber acceptor = spawn({.name = "acceptor"}, [&] { echo.accept_all(); });
    auto clients = std::make_unique<Fiber[]>(static_cast<std::size_t>(wave));
    for (int first = 0; first < kConnections; first += wave) {
      const int count = std::min(wave, kConnections - first);
      for (int i = 0; i < count; ++i) {
        clients[static_cast<std::size_t>(i)] =
            spawn({.name = "client", .stack = 8_KiB}, [&echo, id = first + i] { echo.call(id); });
      }
      for (int i = 0; i < count; ++i) static_cast<void>(clients[static_cast<std::size_t>(i)].join());
      // The servers' ends are closed, too, before the next wave asks for descriptors.
      until([&] { return echo.served >= first + count || echo.lost != 0; });
    }
    if (echo.lost != 0) coir::shutdown();
    static_cast<void>(acceptor.join());
    close_fd(echo.listener);
    // A server's fiber ends a moment after it has counted.
    until([] { return coir::stats().fibers_alive == 1; });
    end = coir::stats();
  });
  CHECK_TRUE(ended.has_value());
  LONGS_EQUAL(0, echo.lost);
  LONGS_EQUAL(kConnections, echo.complete);
  LONGS_EQUAL(kConnections, echo.served);
  LONGS_EQUAL(1, end.fibers_alive);
  LONGS_EQUAL(0, end.fd_waits);
  // No more stacks were ever used than fibers were alive at once, and lay hot with a worker.
  CHECK_TRUE(end.stacks_used <= static_cast<std::uint64_t>(2 * wave + 2 * kHotStacks + 16));
  if (!coir::test::kThreadSanitized) LONGS_EQUAL(fds, count_fds());
}

}  // namespace classic_echo_test
