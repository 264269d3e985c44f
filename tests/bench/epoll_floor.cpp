// The least a server can do: one thread, epoll, one read and one write per wakeup, a fixed answer, no parser. The
// difference to a real server is the price of being one.
//
//   epoll_floor PORT [ANSWER_BYTES [ADDRESS [CONTENT]]]
//   epoll_floor PORT --to PORT
//
// Listens on ADDRESS (127.0.0.1), answers every request of a batch (counted by its blank line) with ANSWER_BYTES bytes,
// head included. Its content is CONTENT, or else 100 bytes. A connection costs no memory beyond the kernel's.
//
// With --to it is the least a proxy can do: each client has a connection to that port, and what comes of one is written to
// the other as it is.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr char kContent[] =
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
static_assert(sizeof kContent == 101, "the content that the others serve");
constexpr std::size_t kBatch = 64;

// answers holds the same answer as often as one read can bring a request, so that a batch is still one write.
char answers[kBatch * 1024];
std::size_t answer_bytes = 0;

// The port that clients are passed on to, or 0, and the other side of each descriptor then.
int upstream_port = 0;
int other_side[65536];

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

// make_answer pads the head with a field of its own until the whole is `total` bytes long.
void make_answer(std::size_t total, const char* content) {
  constexpr std::size_t kMost = sizeof answers / kBatch;
  const std::size_t bytes = std::strlen(content);
  const int head = std::snprintf(answers, kMost, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n", bytes);
  // "X: " and the ends of the field and of the head.
  const std::size_t least = static_cast<std::size_t>(head) + 7 + bytes;
  const std::size_t pad = total > least ? total - least : 0;
  if (least + pad > kMost) fail("epoll_floor: the answer is too long");
  const int size =
      pad == 0 ? std::snprintf(answers + head, kMost - head, "\r\n%s", content)
               : std::snprintf(answers + head, kMost - head, "X: %0*d\r\n\r\n%s", static_cast<int>(pad), 0, content);
  answer_bytes = static_cast<std::size_t>(head + size);
  for (std::size_t i = 1; i < kBatch; ++i) std::memcpy(answers + i * answer_bytes, answers, answer_bytes);
}

std::size_t count_requests(const char* bytes, std::size_t size) {
  std::size_t count = 0;
  const char* const end = bytes + size;
  while (count < kBatch) {
    const void* blank = memmem(bytes, static_cast<std::size_t>(end - bytes), "\r\n\r\n", 4);
    if (blank == nullptr) break;
    bytes = static_cast<const char*>(blank) + 4;
    ++count;
  }
  return count;
}

sockaddr_in address_of(int port, const char* host) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (inet_pton(AF_INET, host, &address.sin_addr) != 1) fail("epoll_floor: address");
  return address;
}

int listen_on(int port, const char* host) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address = address_of(port, host);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fail("epoll_floor: bind");
  if (listen(fd, 4096) != 0) fail("epoll_floor: listen");
  return fd;
}

void watch(int poller, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) != 0) fail("epoll_floor: epoll_ctl");
}

void pass_on(int poller, int client) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = address_of(upstream_port, "127.0.0.1");
  if (fd < 0 || connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fail("epoll_floor: connect");
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  other_side[client] = fd;
  other_side[fd] = client;
  watch(poller, fd);
}

void accept_all(int poller, int listener) {
  for (;;) {
    const int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (upstream_port != 0) pass_on(poller, fd);
    watch(poller, fd);
  }
}

void relay(int fd) {
  if (other_side[fd] == 0) return;  // closed with its other side, in this batch of events
  char bytes[16 * 1024];
  const ssize_t size = read(fd, bytes, sizeof bytes);
  if (size > 0 && write(other_side[fd], bytes, static_cast<std::size_t>(size)) == size) return;
  close(fd);
  close(other_side[fd]);
  other_side[other_side[fd]] = 0;
  other_side[fd] = 0;
}

void serve(int fd) {
  if (upstream_port != 0) return relay(fd);
  char request[16 * 1024];
  const ssize_t size = read(fd, request, sizeof request);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) {
    close(fd);
    return;
  }
  const std::size_t bytes = count_requests(request, static_cast<std::size_t>(size)) * answer_bytes;
  if (bytes > 0 && write(fd, answers, bytes) != static_cast<ssize_t>(bytes)) close(fd);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: epoll_floor PORT [ANSWER_BYTES [ADDRESS [CONTENT]]] | epoll_floor PORT --to PORT\n", stderr);
    return 2;
  }
  if (argc == 4 && std::strcmp(argv[2], "--to") == 0) {
    upstream_port = std::atoi(argv[3]);
    argc = 2;
  }
  make_answer(argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 250, argc > 4 ? argv[4] : kContent);
  const int listener = listen_on(std::atoi(argv[1]), argc > 3 ? argv[3] : "127.0.0.1");
  const int poller = epoll_create1(EPOLL_CLOEXEC);
  watch(poller, listener);
  epoll_event events[256];
  for (;;) {
    const int ready = epoll_wait(poller, events, 256, -1);
    for (int i = 0; i < ready; ++i) {
      if (events[i].data.fd == listener) {
        accept_all(poller, listener);
      } else {
        serve(events[i].data.fd);
      }
    }
  }
}
