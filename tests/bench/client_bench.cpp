// The figures of scripts/bench client that are ours: requests a second by 64 fibers, and what transfers in flight and
// resting connections hold.
//
//   client_bench rps URL SECONDS
//   client_bench transfers COUNT       a server in a child process sends half a response and keeps silent
//   client_bench pooled COUNT          it sends all of one and keeps the connection

#include <arpa/inet.h>
#include <coir/format.h>
#include <coir/http/client.h>
#include <coir/nursery.h>
#include <coir/runtime.h>
#include <coir/worker_stack.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "tests/bench/measure.h"

using coir::http::Client;

namespace {

long resident_bytes() {
  long pages = 0;
  if (FILE* const file = fopen("/proc/self/statm", "r"); file != nullptr) {
    if (fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
    fclose(file);
  }
  return pages * sysconf(_SC_PAGESIZE);
}

// serve_in_child answers each connection's first request by a text, and ends with this process.
std::uint16_t serve_in_child(std::string_view answer) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  if (bind(listener, reinterpret_cast<sockaddr*>(&at), size) != 0 || listen(listener, 4096) != 0) exit(1);
  getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size);
  if (fork() == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
      const int peer = accept(listener, nullptr, nullptr);
      char request[4096];
      if (peer < 0 || read(peer, request, sizeof request) <= 0) continue;
      if (write(peer, answer.data(), answer.size()) < 0) continue;
    }
  }
  close(listener);
  return ntohs(at.sin_port);
}

void requests(Client& client, std::string_view url, int seconds) {
  const std::int64_t begin = bench::wall_ns();
  const std::int64_t end = begin + seconds * 1'000'000'000LL;
  long done = 0;
  long failed = 0;
  {
    coir::Nursery nursery;
    for (int i = 0; i < 64; ++i) {
      nursery.start([&] {
        char buffer[512];
        while (bench::wall_ns() < end) {
          auto response = client.get(url);
          if (!response || response->status() != 200) {
            ++failed;
            continue;
          }
          while (response->read(buffer)) {
          }
          ++done;
        }
      });
    }
    static_cast<void>(nursery.join());
  }
  const double elapsed = static_cast<double>(bench::wall_ns() - begin) / 1e9;
  coir::on_worker_stack([&] {
    if (failed != 0) fprintf(stderr, "client_bench: %ld requests failed\n", failed);
    printf("requests_per_s: %.0f /s\n", static_cast<double>(done) / elapsed);
  });
}

// transfers holds so many at once, each on a fiber of its own, in the middle of their content.
void transfers(Client& client, const char* url, int count) {
  const long before = resident_bytes();
  long held = 0;
  int open = 0;
  coir::Nursery nursery;
  for (int i = 0; i < count; ++i) {
    nursery.start([&] {
      auto response = client.get(url);
      char buffer[16];
      if (!response || response->read(buffer) != 5) return;
      ++open;
      static_cast<void>(response->read(buffer));
    });
  }
  while (open < count) static_cast<void>(coir::sleep(std::chrono::milliseconds(5)));
  coir::on_worker_stack([&] { held = resident_bytes() - before; });
  nursery.cancel();
  static_cast<void>(nursery.join());
  coir::on_worker_stack([&] { printf("transfer_bytes: %.0f B\n", static_cast<double>(held) / count); });
}

// pooled opens so many one after the other: to a host of its own each, for else one connection would serve them all.
void pooled(Client& client, const coir::Address& server, int count) {
  const long before = resident_bytes();
  for (int i = 0; i < count; ++i) {
    char url[40];
    coir::format(url, "http://h", i, "/", '\0');
    auto response = client.get(url, {.to = &server});
    char buffer[16];
    while (response && response->read(buffer)) {
    }
  }
  coir::on_worker_stack([&] {
    const long held = resident_bytes() - before;
    if (client.resting() < static_cast<std::size_t>(count)) fprintf(stderr, "client_bench: not all rest\n");
    printf("pooled_bytes: %.0f B\n", static_cast<double>(held) / count);
  });
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) return 2;
  const std::string_view what = words[1];
  rlimit files{1 << 16, 1 << 16};
  if (setrlimit(RLIMIT_NOFILE, &files) != 0) {
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  std::uint16_t port = 0;
  if (what == "transfers") port = serve_in_child("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello");
  if (what == "pooled") port = serve_in_child("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
  return coir::run([&] {
    const auto most = static_cast<std::uint32_t>(what == "rps" ? 64 : atoi(words[2]) + 1);
    auto client = Client::create({.max_connections = most,
                                  .max_resting = most,
                                  .timeouts = {.between_bytes = std::chrono::minutes(5)},
                                  .proxy_by_environment = false});
    if (!client) return 1;
    if (what == "rps") {
      requests(*client, words[2], count > 3 ? atoi(words[3]) : 3);
      return 0;
    }
    char url[64];
    coir::on_worker_stack([&] { snprintf(url, sizeof url, "http://127.0.0.1:%u/", port); });
    {
      // The first request makes some things once and for all.
      auto first = client->get(url);
    }
    if (what == "transfers") {
      transfers(*client, url, atoi(words[2]));
    } else {
      char text[32];
      const auto server = coir::Address::parse(coir::format(text, "127.0.0.1:", port));
      pooled(*client, *server, atoi(words[2]));
    }
    return 0;
  });
}
