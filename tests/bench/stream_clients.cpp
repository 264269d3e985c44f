// Followers by the thousand of scripts/bench streams, and whoever publishes to them.
//
//   stream_clients ADDRESS PORT
//
// Reads commands from standard input, one a line, and answers each with one line once it is done:
//
//   open N PATH           N more followers, each of which has had the head and something behind it   ->  open TOTAL
//   publish TIMES         publishes one event at a time, the next when every follower has the last.
//                           ->  published MEDIAN P99 TALK_MEDIAN TALK_P99 SENDS_PER_S
//                         in ms: from the event's making to its last follower's, and from the request that brought it
//   follow SECONDS EVERY  publishes every so many ms  ->  followed EVENTS SENDS LOST GONE
//                         LOST: followers that have not got every event in order, each once, 30 s after the last
//   close                 ends all followers          ->  closed TOTAL
//
// Ends at end of input. A follower that the server ends is gone, and lost.

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
#include <utility>
#include <vector>

namespace {

constexpr int kSilenceMs = 30'000;
// "data: ", twenty digits, a space, twelve digits, "\n\n".
constexpr std::size_t kEventBytes = 41;
constexpr std::size_t kNumberAt = 27;
constexpr std::size_t kNumberDigits = 12;

// Follower is one stream. The head ends, and a first line comes, before events count.
struct Follower {
  int fd = -1;
  bool headed = false;
  bool chunked = false;
  bool begun = false;
  bool gone = false;
  bool wrong = false;
  unsigned have = 0;      // bytes of an event that is not whole
  unsigned got = 0;       // events
  std::size_t chunk = 0;  // bytes of a chunk that are missing
  std::size_t line = 0;   // the size that the line of the next one tells so far
  char event[kEventBytes];
};

std::vector<Follower> followers;
std::size_t begun_count = 0, gone_count = 0;
std::uint64_t events_got = 0;
long long last_number = 0;  // of the latest event that was published
double last_stamp = 0;
int poller = -1;
sockaddr_in server{};
int publisher = -1;
char buffer[64 * 1024];

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "stream_clients: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

double now_ms() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

int connected() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) fail("socket");
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (connect(fd, reinterpret_cast<sockaddr*>(&server), sizeof server) != 0) fail("connect");
  return fd;
}

void open_one(const char* path) {
  Follower follower;
  follower.fd = connected();
  char request[256];
  const int size = std::snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
  if (write(follower.fd, request, static_cast<std::size_t>(size)) != size) fail("write");
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u32 = static_cast<std::uint32_t>(followers.size());
  if (epoll_ctl(poller, EPOLL_CTL_ADD, follower.fd, &event) != 0) fail("epoll_ctl");
  followers.push_back(follower);
}

void lose(Follower& follower) {
  if (follower.gone) return;
  follower.gone = true;
  ++gone_count;
  close(follower.fd);
}

// take_event checks an event that is whole, and reads the stamp of the first follower that has it.
void take_event(Follower& follower) {
  ++events_got;
  const unsigned long long number = std::strtoull(follower.event + kNumberAt, nullptr, 10);
  if (std::memcmp(follower.event, "data: ", 6) != 0 || number == 0) follower.wrong = true;
  if (static_cast<long long>(number) > last_number) {
    last_number = static_cast<long long>(number);
    last_stamp = static_cast<double>(std::strtoull(follower.event + 6, nullptr, 10)) / 1e6;
  }
  ++follower.got;
}

// take_content takes what the framing left: a first comment, then events.
void take_content(Follower& follower, const char* bytes, std::size_t size) {
  if (!follower.begun) {
    const char* const comment = static_cast<const char*>(memmem(bytes, size, ":\n\n", 3));
    if (comment == nullptr) return;
    follower.begun = true;
    ++begun_count;
    size -= static_cast<std::size_t>(comment + 3 - bytes);
    bytes = comment + 3;
  }
  while (size > 0) {
    const std::size_t wanted = std::min(size, kEventBytes - follower.have);
    std::memcpy(follower.event + follower.have, bytes, wanted);
    follower.have += static_cast<unsigned>(wanted);
    bytes += wanted;
    size -= wanted;
    if (follower.have == kEventBytes) {
      follower.have = 0;
      take_event(follower);
    }
  }
}

// take_chunks takes the framing off that a proxy may have put on.
void take_chunks(Follower& follower, const char* bytes, std::size_t size) {
  while (size > 0) {
    if (follower.chunk > 0) {
      const std::size_t wanted = std::min(size, follower.chunk);
      take_content(follower, bytes, wanted);
      follower.chunk -= wanted;
      bytes += wanted;
      size -= wanted;
      continue;
    }
    const char byte = *bytes++;
    --size;
    if (byte == '\n') {
      follower.chunk = std::exchange(follower.line, 0);
    } else if (byte != '\r') {
      follower.line = follower.line * 16 + static_cast<unsigned>(byte <= '9' ? byte - '0' : (byte | 0x20) - 'a' + 10);
    }
  }
}

void take(Follower& follower, const char* bytes, std::size_t size) {
  if (!follower.headed) {
    // A head comes in one piece; the first comment with it or behind it.
    const char* const end = static_cast<const char*>(memmem(bytes, size, "\r\n\r\n", 4));
    if (end == nullptr || std::memcmp(bytes, "HTTP/1.1 200 ", 13) != 0) {
      std::fprintf(stderr, "stream_clients: the server answers %.20s\n", bytes);
      return lose(follower);
    }
    follower.headed = true;
    follower.chunked = memmem(bytes, static_cast<std::size_t>(end - bytes), "chunked", 7) != nullptr;
    size -= static_cast<std::size_t>(end + 4 - bytes);
    bytes = end + 4;
  }
  if (follower.chunked) {
    take_chunks(follower, bytes, size);
  } else {
    take_content(follower, bytes, size);
  }
}

// poll_once reads what has come. False: nothing has, for so long.
bool poll_once(int timeout_ms) {
  static epoll_event events[1024];
  const int ready = epoll_wait(poller, events, 1024, timeout_ms);
  if (ready < 0 && errno != EINTR) fail("epoll_wait");
  for (int i = 0; i < ready; ++i) {
    Follower& follower = followers[events[i].data.u32];
    if (follower.gone) continue;
    const ssize_t size = recv(follower.fd, buffer, sizeof buffer, MSG_DONTWAIT);
    if (size < 0 && errno == EAGAIN) continue;
    if (size <= 0) {
      lose(follower);
    } else {
      take(follower, buffer, static_cast<std::size_t>(size));
    }
  }
  return ready > 0;
}

void open_more(long count, const char* path) {
  constexpr long kStep = 100;
  while (count > 0) {
    const long step = std::min(count, kStep);
    for (long i = 0; i < step; ++i) open_one(path);
    while (begun_count + gone_count < followers.size()) {
      if (!poll_once(kSilenceMs)) fail("waiting for streams");
    }
    count -= step;
    if (gone_count > 0) break;
  }
  std::printf("open %zu\n", begun_count - gone_count);
}

// post sends the request to publish; answer reads what came of it.
void post() {
  static const char request[] = "POST /publish HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";
  if (write(publisher, request, sizeof request - 1) != static_cast<ssize_t>(sizeof request - 1)) fail("publish");
}
void answer() {
  const ssize_t size = read(publisher, buffer, sizeof buffer);
  if (size < 13 || std::memcmp(buffer, "HTTP/1.1 200 ", 13) != 0) fail("publish is not answered 200");
}

void publish(long times) {
  std::vector<double> spans, talks;
  const double began = now_ms();
  for (long i = 0; i < times; ++i) {
    const std::uint64_t wanted = events_got + followers.size() - gone_count;
    const double asked = now_ms();
    post();
    while (events_got < wanted && gone_count == 0) {
      if (!poll_once(kSilenceMs)) fail("waiting for an event");
    }
    const double over = now_ms();
    spans.push_back(over - last_stamp);
    talks.push_back(over - asked);
    answer();
  }
  const double took = now_ms() - began;
  std::sort(spans.begin(), spans.end());
  std::sort(talks.begin(), talks.end());
  const std::size_t p99 = spans.size() * 99 / 100;
  std::printf("published %.3f %.3f %.3f %.3f %.0f\n", spans[spans.size() / 2], spans[p99], talks[talks.size() / 2],
              talks[p99], static_cast<double>(times) * static_cast<double>(followers.size()) * 1e3 / took);
}

void follow(long seconds, long every_ms) {
  for (Follower& follower : followers) follower.got = 0;
  const double began = now_ms();
  unsigned published = 0;
  for (; static_cast<double>(published) * static_cast<double>(every_ms) < static_cast<double>(seconds) * 1e3;) {
    const double next = began + static_cast<double>(published) * static_cast<double>(every_ms);
    for (double left; (left = next - now_ms()) > 0;) poll_once(static_cast<int>(left) + 1);
    post();
    answer();
    ++published;
  }
  const auto complete = [&] {
    return std::count_if(followers.begin(), followers.end(), [&](const Follower& follower) {
      return !follower.gone && !follower.wrong && follower.got == published;
    });
  };
  const double patience = now_ms() + kSilenceMs;
  while (complete() < static_cast<long>(followers.size()) && now_ms() < patience) poll_once(100);
  std::uint64_t sends = 0;
  for (const Follower& follower : followers) sends += follower.got;
  std::printf("followed %u %llu %ld %zu\n", published, static_cast<unsigned long long>(sends),
              static_cast<long>(followers.size()) - static_cast<long>(complete()), gone_count);
}

void close_all() {
  const std::size_t total = followers.size();
  for (Follower& follower : followers) lose(follower);
  followers.clear();
  begun_count = gone_count = 0;
  std::printf("closed %zu\n", total);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 || inet_pton(AF_INET, argv[1], &server.sin_addr) != 1) {
    std::fputs("usage: stream_clients ADDRESS PORT\n", stderr);
    return 2;
  }
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  server.sin_family = AF_INET;
  server.sin_port = htons(static_cast<std::uint16_t>(std::atoi(argv[2])));
  poller = epoll_create1(EPOLL_CLOEXEC);
  publisher = connected();
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  char line[128], path[100];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    long count = 0, every = 0;
    if (std::sscanf(line, "open %ld %99s", &count, path) == 2) {
      open_more(count, path);
    } else if (std::sscanf(line, "publish %ld", &count) == 1 && count > 0 && !followers.empty()) {
      publish(count);
    } else if (std::sscanf(line, "follow %ld %ld", &count, &every) == 2 && every > 0) {
      follow(count, every);
    } else if (std::strcmp(line, "close\n") == 0) {
      close_all();
    } else {
      std::fprintf(stderr, "stream_clients: not a command: %s", line);
      return 2;
    }
  }
}
