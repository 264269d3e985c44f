// Holds keep-alive connections that have each made one request, and makes more of them when told to: the client of
// every figure that needs to know exactly how many connections and requests there were.
//
//   idle_clients PORT TARGET
//
// Reads commands from standard input, one a line, and answers each with one line once it is done:
//
//   open N    N more connections to 127.0.0.1, one request each, all answered   ->  open TOTAL ANSWER_BYTES
//   go N      at least N requests, every connection busy all the time           ->  done EXACT
//
// Ends at end of input. An answer other than 200, a connection that the server ends, or a silence of ten seconds is
// reported and ends it with status 1.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kMost = 65536;
constexpr int kSilenceMs = 10'000;

// Bytes of each connection's answer that are still to come. The first answer of all is read whole, for its length; the others
// come from the same server for the same target and have it too.
std::size_t missing[kMost];
int fds[kMost];
int open_count = 0;
int poller = -1;
sockaddr_in server{};
char request[1024];
std::size_t request_bytes = 0;
std::size_t answer_bytes = 0;
char buffer[64 * 1024];

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "idle_clients: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

void ask(int index) {
  if (write(fds[index], request, request_bytes) != static_cast<ssize_t>(request_bytes)) fail("write");
  missing[index] = answer_bytes;
}

// learn_length reads one answer whole, blocking, and keeps its length.
void learn_length(int fd) {
  std::size_t have = 0;
  for (;;) {
    const ssize_t size = read(fd, buffer + have, sizeof buffer - 1 - have);
    if (size <= 0) fail("first answer");
    have += static_cast<std::size_t>(size);
    buffer[have] = '\0';
    const char* end = std::strstr(buffer, "\r\n\r\n");
    if (end == nullptr) continue;
    if (std::strncmp(buffer, "HTTP/1.1 200 ", 13) != 0) {
      std::fprintf(stderr, "idle_clients: the server answers %.20s\n", buffer);
      std::exit(1);
    }
    const char* field = strcasestr(buffer, "\r\ncontent-length:");
    if (field == nullptr || field > end) fail("an answer without Content-Length");
    const std::size_t body = std::strtoul(field + 17, nullptr, 10);
    answer_bytes = static_cast<std::size_t>(end + 4 - buffer) + body;
    if (have >= answer_bytes) return;
  }
}

void open_one() {
  if (open_count == kMost) fail("too many connections");
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) fail("socket");
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (connect(fd, reinterpret_cast<sockaddr*>(&server), sizeof server) != 0) fail("connect");
  const int index = open_count++;
  fds[index] = fd;
  ask(index);
  if (index == 0) {
    learn_length(fd);
    missing[index] = 0;
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u32 = static_cast<std::uint32_t>(index);
  if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) != 0) fail("epoll_ctl");
}

// run reads answers until `outstanding` of them are complete, and after each asks again while `more` is positive.
void run(long outstanding, long more) {
  epoll_event events[256];
  while (outstanding > 0) {
    const int ready = epoll_wait(poller, events, 256, kSilenceMs);
    if (ready == 0) errno = ETIMEDOUT;
    if (ready <= 0) fail("waiting for answers");
    for (int i = 0; i < ready; ++i) {
      const int index = static_cast<int>(events[i].data.u32);
      const ssize_t size = recv(fds[index], buffer, sizeof buffer, MSG_DONTWAIT);
      if (size < 0 && errno == EAGAIN) continue;
      if (size == 0) errno = ECONNRESET;
      if (size <= 0) fail("the server ended a connection");
      if (static_cast<std::size_t>(size) > missing[index]) {
        errno = EPROTO;
        fail("an answer longer than the first");
      }
      missing[index] -= static_cast<std::size_t>(size);
      if (missing[index] > 0) continue;
      if (more > 0) {
        --more;
        ask(index);
      } else {
        --outstanding;
      }
    }
  }
}

// open_more goes in steps that fit any server's backlog.
void open_more(long count) {
  constexpr long kStep = 100;
  while (count > 0) {
    const long step = count < kStep ? count : kStep;
    long outstanding = step;
    for (long i = 0; i < step; ++i) open_one();
    if (open_count == step) --outstanding;  // the very first has been answered already
    run(outstanding, 0);
    count -= step;
  }
  std::printf("open %d %zu\n", open_count, answer_bytes);
}

void make_requests(long count) {
  const long more = count > open_count ? count - open_count : 0;
  for (int i = 0; i < open_count; ++i) ask(i);
  run(open_count, more);
  std::printf("done %ld\n", open_count + more);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: idle_clients PORT TARGET\n", stderr);
    return 2;
  }
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  server.sin_family = AF_INET;
  server.sin_port = htons(static_cast<std::uint16_t>(std::atoi(argv[1])));
  server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  request_bytes = static_cast<std::size_t>(
      std::snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\n\r\n", argv[2], argv[1]));
  poller = epoll_create1(EPOLL_CLOEXEC);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  char line[64];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    long count = 0;
    if (std::sscanf(line, "open %ld", &count) == 1) {
      open_more(count);
    } else if (std::sscanf(line, "go %ld", &count) == 1 && open_count > 0) {
      make_requests(count);
    } else {
      std::fprintf(stderr, "idle_clients: not a command: %s", line);
      return 2;
    }
  }
}
