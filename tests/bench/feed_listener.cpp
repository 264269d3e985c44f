// The clients of a feed, for fibers_bench.cpp and go_fibers_bench.go alike, and the clock of both: it starts the
// program that serves them, reads at the other ends of its sockets, and prints how long messages were on their way.
//
//   feed_listener PROGRAM [ARGUMENT ...]
//
// PROGRAM finds a socket for each of kClients from descriptor 3 on. A message is the monotonic time of its publication
// in nanoseconds, 8 bytes; every eighth is answered by a byte. It ends when the sockets do.

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "measure.h"

namespace {

constexpr int kClients = 8;
constexpr int kFirst = 3;
constexpr std::size_t kWarmUp = 50 * kClients;  // messages that are not counted

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

std::int64_t monotonic_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

// Client is one end of a socket that brings whole messages, a few at a time.
struct Client {
  int fd = -1;
  std::size_t partial = 0;
  unsigned heard = 0;
  char bytes[512];

  // hear reads what there is, and is false at the end.
  bool hear(std::vector<double>& micros) {
    const ssize_t n = read(fd, bytes + partial, sizeof bytes - partial);
    const std::int64_t now = monotonic_ns();
    if (n <= 0) return false;
    const std::size_t size = partial + static_cast<std::size_t>(n);
    std::size_t at = 0;
    for (; at + sizeof now <= size; at += sizeof now) {
      std::int64_t sent;
      std::memcpy(&sent, bytes + at, sizeof sent);
      micros.push_back(static_cast<double>(now - sent) / 1e3);
      // The program may have closed behind its last message.
      if (++heard % 8 == 0 && send(fd, "!", 1, MSG_NOSIGNAL) != 1) return false;
    }
    partial = size - at;
    std::memmove(bytes, bytes + at, partial);
    return true;
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: feed_listener PROGRAM [ARGUMENT ...]\n", stderr);
    return 2;
  }
  Client clients[kClients];
  int served[kClients];
  for (int i = 0; i < kClients; ++i) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) fail("socketpair");
    clients[i].fd = ends[0];
    served[i] = ends[1];
  }
  const pid_t child = fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    // Move it out of the way first, so that none replaces another; dup2 makes it inheritable.
    for (int& fd : served) fd = dup(fd);
    for (int i = 0; i < kClients; ++i) dup2(served[i], kFirst + i);
    for (int fd : served) {
      if (fd >= kFirst + kClients) close(fd);
    }
    execv(argv[1], argv + 1);
    fail(argv[1]);
  }
  for (const int fd : served) close(fd);

  std::vector<double> micros;
  int open = kClients;
  while (open > 0) {
    pollfd entries[kClients];
    for (int i = 0; i < kClients; ++i) entries[i] = {.fd = clients[i].fd, .events = POLLIN, .revents = 0};
    if (poll(entries, kClients, -1) < 0) fail("poll");
    for (int i = 0; i < kClients; ++i) {
      if (entries[i].revents == 0 || clients[i].hear(micros)) continue;
      close(clients[i].fd);
      clients[i].fd = -1;
      --open;
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0 || micros.size() <= kWarmUp) {
    std::fputs("feed_listener: the program failed\n", stderr);
    return 1;
  }
  micros.erase(micros.begin(), micros.begin() + kWarmUp);
  std::sort(micros.begin(), micros.end());
  bench::print("feed_latency_us", micros[micros.size() / 2], "us");
  bench::print("feed_latency_p99_us", micros[micros.size() * 99 / 100], "us");
  return 0;
}
