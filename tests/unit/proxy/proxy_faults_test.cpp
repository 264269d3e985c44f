// Want of memory or descriptors at any one point of what passes through a proxy: the n-th charge to the ledger is
// refused, or the n-th call to the kernel of a kind fails, for n = 1, 2, 3 ... until an exchange meets none. The client is
// refused or its connection ends, never left waiting, and never takes a part for the whole; the next is served as if
// nothing had been; nothing is left over.

#include <coir/http/proxy.h>
#include <coir/http/upstreams.h>
#include <poll.h>

#include <optional>

#include "tests/unit/http/faulty_streams.h"

using namespace coir::http;
using namespace coir::test;
using namespace std::chrono_literals;

namespace {

std::optional<Forwarder> g_forwarder;
std::optional<Upstreams> g_upstreams;
constexpr ForwardRules kRules{.rest_after = 1ms};
constexpr std::size_t kLong = 200'000;

bool forward(Exchange& exchange) {
  if (!exchange.request().path.starts_with("/app/")) return false;
  g_forwarder->forward(exchange, g_upstreams->group(), kRules);
  return true;
}

// PlainUpstream serves each connection on a thread of its own, by blocking sockets whose calls never fail.
class PlainUpstream {
 public:
  PlainUpstream() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::bind(fd_, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) __builtin_trap();
    socklen_t size = sizeof at;
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size);
    port_ = ntohs(at.sin_port);
    ::listen(fd_, 64);
    pthread_create(&thread_, nullptr, &accept_all, this);
  }
  ~PlainUpstream() {
    ::shutdown(fd_, SHUT_RDWR);
    pthread_join(thread_, nullptr);
    until([] { return serving_ == 0; });
    ::close(fd_);
  }
  std::uint16_t port() const { return port_; }

 private:
  static void* accept_all(void* self) {
    spare_this_thread();
    for (;;) {
      const int fd = ::accept4(static_cast<PlainUpstream*>(self)->fd_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return nullptr;
      ++serving_;
      pthread_t thread;
      pthread_create(&thread, nullptr, &serve, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)));
      pthread_detach(thread);
    }
  }

  static bool say(int fd, std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  // paused returns once the proxy has had time to let the response rest, or is gone.
  static void pause(int fd) {
    pollfd entry{.fd = fd, .events = POLLRDHUP, .revents = 0};
    ::poll(&entry, 1, 5);
  }
  static bool answer(int fd, std::string_view head) {
    if (head.find("POST ") == 0) {
      char piece[4096];
      for (std::size_t left = kLong; left != 0;) {
        const ssize_t got = ::recv(fd, piece, std::min(left, sizeof piece), 0);
        if (got <= 0) return false;
        left -= static_cast<std::size_t>(got);
      }
    }
    if (head.find("/events") != head.npos) {
      if (!say(fd,
               "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\nTransfer-Encoding: "
               "chunked\r\n\r\n"))
        return false;
      for (const std::string_view event : {"b\r\ndata: one\n\n\r\n", "b\r\ndata: two\n\n\r\n", "0\r\n\r\n"}) {
        pause(fd);
        if (!say(fd, event)) return false;
      }
      return true;
    }
    if (head.find("/long") != head.npos) {
      return say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 200003\r\n\r\n") && say(fd, {large, kLong}) && say(fd, "end");
    }
    if (head.find("/pause") != head.npos) {
      if (!say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc")) return false;
      pause(fd);
      return say(fd, "def");
    }
    if (head.find("Upgrade: ") != head.npos) {
      if (!say(fd, "HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nfirst")) return false;
      char text[64];
      for (ssize_t got; (got = ::recv(fd, text, sizeof text, 0)) > 0;) {
        if (!say(fd, {text, static_cast<std::size_t>(got)})) break;
      }
      return false;
    }
    return say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
  }
  static void* serve(void* argument) {
    spare_this_thread();
    const int fd = static_cast<int>(reinterpret_cast<std::intptr_t>(argument));
    char head[4096];
    for (bool more = true; more;) {
      std::size_t have = 0;
      while (more && have < sizeof head && !std::string_view(head, have).ends_with("\r\n\r\n")) {
        more = ::recv(fd, head + have, 1, 0) == 1;
        ++have;
      }
      more = more && answer(fd, {head, have});
    }
    ::close(fd);
    --serving_;
    return nullptr;
  }

  static inline std::atomic<int> serving_ = 0;
  const int fd_;
  std::uint16_t port_ = 0;
  pthread_t thread_{};
};

std::optional<PlainUpstream> g_upstream;

bool gets(StreamPeer& peer) {
  return peer.say("GET /app/ HTTP/1.1\r\nHost: t\r\n\r\n") && peer.hears_head("200") && peer.hears("hello");
}

constexpr StreamLife kLives[] = {
    {"a request and another", gets, gets},
    {"an upload",
     [](StreamPeer& peer) {
       return peer.say("POST /app/ HTTP/1.1\r\nHost: t\r\nContent-Length: 200000\r\n\r\n") && peer.say({large, kLong});
     },
     [](StreamPeer& peer) { return peer.hears_head("200") && peer.hears("hello"); }},
    {"a long response",
     [](StreamPeer& peer) { return peer.say("GET /app/long HTTP/1.1\r\nHost: t\r\n\r\n") && peer.hears_head("200"); },
     [](StreamPeer& peer) { return peer.finds("xend"); }},
    {"a response that pauses",
     [](StreamPeer& peer) {
       return peer.say("GET /app/pause HTTP/1.1\r\nHost: t\r\n\r\n") && peer.hears_head("200") && peer.hears("abc");
     },
     [](StreamPeer& peer) { return peer.hears("def"); }},
    {"an event stream",
     [](StreamPeer& peer) {
       return peer.say("GET /app/events HTTP/1.1\r\nHost: t\r\n\r\n") && peer.hears_head("200") &&
              peer.finds("data: one\n\n");
     },
     [](StreamPeer& peer) { return peer.finds("data: two\n\n") && peer.finds("\r\n0\r\n\r\n") && peer.ends(); }},
    {"a tunnel",
     [](StreamPeer& peer) {
       return peer.say("GET /app/ HTTP/1.1\r\nHost: t\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n") &&
              peer.hears_head("101") && peer.hears("first");
     },
     [](StreamPeer& peer) { return peer.say("ping") && peer.hears("ping") && peer.say("pong") && peer.hears("pong"); }},
};

}  // namespace

struct ProxyFaultsServer : FaultyStreams {
  bool prepare() override {
    auto forwarder = Forwarder::create();
    if (!forwarder) return false;
    g_forwarder.emplace(std::move(*forwarder));
    char url[40];
    snprintf(url, sizeof url, "http://127.0.0.1:%u", g_upstream->port());
    auto upstreams = Upstreams::create(url);
    if (!upstreams) return g_forwarder.reset(), false;
    g_upstreams.emplace(std::move(*upstreams));
    site.also = forward;
    return true;
  }
  void release() override {
    g_forwarder.reset();
    g_upstreams.reset();
  }
  std::size_t kept() const override { return g_forwarder->streams(); }
  void setup() override {
    FaultyStreams::setup();
    g_upstream.emplace();
  }
  void teardown() override {
    FaultyStreams::teardown();
    g_upstream.reset();
  }
};

TEST_GROUP_BASE(ProxyFaults, ProxyFaultsServer){};

TEST(ProxyFaults, whatever_fails_ends_one_exchange) {
  whatever_fails(kLives);
  met({Call::charge, Call::close, Call::recv, Call::send});
}

TEST(ProxyFaults, a_server_stops_though_something_fails) {
  // What rests: the last two.
  a_stop_while_something_fails(std::span(kLives).subspan(4, 2));
}
