// The proofs that fiber runtimes are asked for: many yields, many joins, pipes to their end, many connections.

#include <CppUTest/TestHarness.h>
#include <arpa/inet.h>
#include <coir/fiber.h>
#include <coir/runtime.h>
#include <coir/wait.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "board.h"
#include "tests/support/scale.h"
#include "tests/support/watchdog.h"

using coir::Deadline;
using coir::Direction;
using coir::Fiber;
using coir::run_until_idle;
using coir::spawn;
using coir::Task;
using coir::test::scaled;

namespace {

int fib(int n) {
  return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

// Load counts the pieces of work that each thread did. Its slot is found anew at each call: the caller may have moved.
class Load {
 public:
  [[gnu::noinline]] void count() noexcept {
    static thread_local int slot = -1;
    static std::atomic<int> slots{0};
    if (slot < 0) slot = slots++ % kSlots;
    counts_[slot].fetch_add(1, std::memory_order_relaxed);
  }
  long busiest() const {
    long most = 0;
    for (const auto& count : counts_) most = std::max(most, count.load());
    return most;
  }
  long total() const {
    long sum = 0;
    for (const auto& count : counts_) sum += count.load();
    return sum;
  }

 private:
  static constexpr int kSlots = 64;
  std::atomic<long> counts_[kSlots] = {};
};

// Both loops return the number of bytes moved; less than asked for when the other side has ended.
std::size_t read_fully(int fd, char* into, std::size_t bytes) {
  std::size_t have = 0;
  while (have < bytes) {
    const ssize_t got = read(fd, into + have, bytes - have);
    if (got == 0) break;
    if (got > 0) {
      have += static_cast<std::size_t>(got);
    } else if (errno != EAGAIN || !coir::wait(fd, Direction::readable)) {
      break;
    }
  }
  return have;
}
bool write_fully(int fd, const char* from, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t sent = send(fd, from, bytes, MSG_NOSIGNAL);
    const ssize_t put = sent < 0 && errno == ENOTSOCK ? write(fd, from, bytes) : sent;
    if (put > 0) {
      from += put;
      bytes -= static_cast<std::size_t>(put);
    } else if (errno != EAGAIN || !coir::wait(fd, Direction::writable)) {
      return false;
    }
  }
  return true;
}

int open_fds() {
  int count = 0;
  for (int fd = 0; fd < 4096; ++fd) count += fcntl(fd, F_GETFD) >= 0;
  return count;
}

}  // namespace

TEST_GROUP(Classic) {
  coir::test::Watchdog watchdog{150, "classic_test"};
};

TEST(Classic, a_hundred_fibers_yield_a_thousand_times_each) {
  std::atomic<int> yields{0};
  const auto ended = run_until_idle({}, [&] {
    Fiber fibers[100];
    for (Fiber& fiber : fibers) {
      fiber = spawn([&] {
        for (int i = 0; i < 1'000; ++i) {
          yields.fetch_add(1, std::memory_order_relaxed);
          coir::yield();
        }
      });
    }
    for (Fiber& fiber : fibers) static_cast<void>(fiber.join());
  });
  CHECK_TRUE(ended.has_value());
  LONGS_EQUAL(100'000, yields);
}

TEST(Classic, a_hundred_thousand_fibers_compute_and_every_worker_does_its_share) {
  constexpr int kAll = scaled({100'000, 5'000, 1'000, 10'000});
  constexpr int kAtOnce = std::min(kAll, static_cast<int>(coir::board::kStackCapacity8) - 1);
  // Where the machine runs other programs meanwhile, a worker may get less of it than its due: then once more.
  for (int attempt = 1;; ++attempt) {
    Load load;
    int right = 0;
    unsigned workers = 0;
    const auto ended = run_until_idle({.workers = 2}, [&] {
      workers = coir::stats().workers;
      auto* const tasks = new Task<int>[kAtOnce];
      for (int begun = 0; begun < kAll; begun += kAtOnce) {
        const int wave = std::min(kAtOnce, kAll - begun);
        for (int i = 0; i < wave; ++i) {
          tasks[i] = spawn({.name = "fib", .stack = 8 * 1024}, [&load] {
            int sum = 0;
            for (int k = 0; k < 10; ++k) {
              load.count();
              if (k == 0) sum = fib(20);
              coir::yield();
            }
            return sum;
          });
        }
        for (int i = 0; i < wave; ++i) {
          const auto result = tasks[i].await();
          right += result && *result == 6'765;
        }
      }
      delete[] tasks;
    });
    CHECK_TRUE(ended.has_value());
    LONGS_EQUAL(kAll, right);
    LONGS_EQUAL(kAll * 10L, load.total());
    // Within twice of even: of two workers none does less than a quarter.
    const bool even = workers != 2 || load.busiest() <= load.total() * 3 / 4;
    if (even) break;
    CHECK_TRUE(attempt < 3);
  }
}

TEST(Classic, two_pipes_carry_a_thousand_messages_each_and_then_their_end) {
  constexpr int kMessages = 1'000;
  std::atomic<int> received{0}, ends{0}, wrong{0};
  const int before = open_fds();
  const auto ended = run_until_idle({}, [&] {
    for (int pair = 0; pair < 2; ++pair) {
      int fds[2];
      if (pipe2(fds, O_NONBLOCK | O_CLOEXEC) != 0) return;
      spawn({.name = "reader"}, [&, fd = fds[0]] {
        for (int expected = 0;; ++expected) {
          int message = -1;
          const std::size_t got = read_fully(fd, reinterpret_cast<char*>(&message), sizeof message);
          if (got == 0) break;
          if (got != sizeof message || message != expected) ++wrong;
          ++received;
        }
        ++ends;
        coir::close_fd(fd);
      }).detach();
      spawn({.name = "writer"}, [&, fd = fds[1]] {
        for (int i = 0; i < kMessages; ++i) wrong += !write_fully(fd, reinterpret_cast<const char*>(&i), sizeof i);
        coir::close_fd(fd);
      }).detach();
    }
  });
  CHECK_TRUE(ended.has_value());
  LONGS_EQUAL(2 * kMessages, received);
  LONGS_EQUAL(2, ends);
  LONGS_EQUAL(0, wrong);
  LONGS_EQUAL(before, open_fds());
}

TEST(Classic, ten_thousand_connections_echo_a_hundred_messages_each) {
  constexpr int kConnections = scaled({10'000, 500, 200, 400});
  constexpr int kWave = std::min({500, kConnections, static_cast<int>(coir::board::kStackCapacity16) / 4});
  constexpr int kMessages = 100;
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 4096);
  setrlimit(RLIMIT_NOFILE, &limit);
  const int before = open_fds();
  std::atomic<long> echoed{0};
  std::atomic<int> failures{0};
  std::uint64_t alive = 0;
  const auto ended = run_until_idle({}, [&] {
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(listener, 1024) != 0 ||
        getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      ++failures;
      return;
    }
    Fiber acceptor = spawn({.name = "acceptor"}, [&, listener] {
      for (int accepted = 0; accepted < kConnections;) {
        const int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
          if (errno == EAGAIN && coir::wait(listener, Direction::readable)) continue;
          if (errno == ECONNABORTED) continue;
          ++failures;
          break;
        }
        ++accepted;
        spawn({.name = "echo"}, [fd] {
          char message[16];
          while (read_fully(fd, message, sizeof message) == sizeof message) {
            if (!write_fully(fd, message, sizeof message)) break;
          }
          coir::close_fd(fd);
        }).detach();
      }
    });
    auto* const clients = new Fiber[kWave];
    for (int begun = 0; begun < kConnections; begun += kWave) {
      const int wave = std::min(kWave, kConnections - begun);
      for (int i = 0; i < wave; ++i) {
        clients[i] = spawn({.name = "client"}, [&, i] {
          const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
          if (fd < 0) {
            ++failures;
            return;
          }
          if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
              (errno != EINPROGRESS || !coir::wait(fd, Direction::writable))) {
            ++failures;
          }
          char sent[16] = {}, got[16];
          for (int k = 0; k < kMessages; ++k) {
            memcpy(sent, &i, sizeof i);
            memcpy(sent + 4, &k, sizeof k);
            if (!write_fully(fd, sent, sizeof sent) || read_fully(fd, got, sizeof got) != sizeof got ||
                memcmp(sent, got, sizeof got) != 0) {
              ++failures;
              break;
            }
            echoed.fetch_add(1, std::memory_order_relaxed);
          }
          coir::close_fd(fd);
        });
      }
      for (int i = 0; i < wave; ++i) static_cast<void>(clients[i].join());
    }
    delete[] clients;
    static_cast<void>(acceptor.join());
    coir::close_fd(listener);
    while (coir::stats().fibers_alive > 1) coir::yield();  // the echoes see their clients' ends
    alive = coir::stats().fibers_alive;
  });
  CHECK_TRUE(ended.has_value());
  LONGS_EQUAL(0, failures);
  LONGS_EQUAL(static_cast<long>(kConnections) * kMessages, echoed);
  LONGS_EQUAL(1, alive);
  LONGS_EQUAL(before, open_fds());
}
