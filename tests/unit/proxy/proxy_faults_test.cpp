// Want of memory or descriptors at any one point of what passes through a proxy: the n-th charge to the ledger is
// refused, or the n-th call to the kernel of a kind fails, for n = 1, 2, 3 ... until an exchange meets none. The client is
// refused or its connection ends, never left waiting, and never takes a part for the whole; the next is served as if
// nothing had been; nothing is left over.

#include <optional>

#include "proxy/forwarder.h"
#include "tests/support/receive_head.h"
#include "tests/unit/http/faulty_streams.h"
#include "tests/unit/proxy/plain_upstream.h"

namespace proxy_faults_test {

using namespace coir::http;
using namespace coir::test;
using namespace std::chrono_literals;

namespace {

std::optional<Forwarder> g_forwarder;
std::optional<Upstreams> g_upstreams;
constexpr ForwardRules kRules{.rest_after = 1ms};
constexpr std::size_t kLong = 200'000;
constexpr std::size_t kSlow = 200'000;  // more than the sockets take of a client that reads nothing

bool forward(Exchange& exchange) {
  if (!exchange.request().path.starts_with("/app/")) return false;
  g_forwarder->forward(exchange, g_upstreams->group(), kRules);
  return true;
}

bool answer_from_upstream(int fd, std::string_view head) {
  if (head.find("POST ") == 0) {
    char piece[4096];
    for (std::size_t left = kLong; left != 0;) {
      const ssize_t got = ::recv(fd, piece, std::min(left, sizeof piece), 0);
      if (got <= 0) return false;
      left -= static_cast<std::size_t>(got);
    }
  }
  if (head.find("/events") != head.npos) {
    if (!PlainUpstream::say(
            fd,
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\nTransfer-Encoding: "
            "chunked\r\n\r\n"))
      return false;
    for (const std::string_view event : {"b\r\ndata: one\n\n\r\n", "b\r\ndata: two\n\n\r\n", "0\r\n\r\n"}) {
      PlainUpstream::pause(fd);
      if (!PlainUpstream::say(fd, event)) return false;
    }
    return true;
  }
  if (head.find("/long") != head.npos) {
    return PlainUpstream::say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 200003\r\n\r\n") &&
           PlainUpstream::say(fd, {large, kLong}) && PlainUpstream::say(fd, "end");
  }
  if (head.find("/slow") != head.npos) {
    return PlainUpstream::say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 200003\r\n\r\n") &&
           PlainUpstream::say(fd, {large, kSlow}) && PlainUpstream::say(fd, "end");
  }
  if (head.find("/trail") != head.npos) {
    return PlainUpstream::say(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n30d43\r\n") &&
           PlainUpstream::say(fd, {large, kSlow}) && PlainUpstream::say(fd, "end\r\n0\r\nX-Sum: 1\r\n\r\n");
  }
  if (head.find("/pause") != head.npos) {
    if (!PlainUpstream::say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc")) return false;
    PlainUpstream::pause(fd);
    return PlainUpstream::say(fd, "def");
  }
  if (head.find("Upgrade: ") != head.npos) {
    if (!PlainUpstream::say(fd, "HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nfirst")) return false;
    char text[64];
    for (ssize_t got; (got = ::recv(fd, text, sizeof text, 0)) > 0;) {
      if (!PlainUpstream::say(fd, {text, static_cast<std::size_t>(got)})) break;
    }
    return false;
  }
  return PlainUpstream::say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
}

void serve_from_upstream(int fd) {
  char head[4096];
  for (ssize_t have; (have = receive_head(fd, head)) > 0;) {
    if (!answer_from_upstream(fd, {head, static_cast<std::size_t>(have)})) return;
  }
}

std::optional<PlainUpstream> g_upstream;

// rests waits until the exchange rests, which it does not where something fails.
bool rests(std::size_t (Forwarder::*kept)() const noexcept) {
  return until([=] { return (*g_forwarder.*kept)() == 1 || failures() != 0; }, coir::Deadline::after(60s));
}

bool gets(StreamPeer& peer) {
  return peer.say("GET /app/ HTTP/1.1\r\nHost: localhost\r\n\r\n") && peer.hears_head("200") && peer.hears("hello");
}

constexpr StreamLife kLives[] = {
    {"a request and another", gets, gets},
    {"an upload",
     [](StreamPeer& peer) {
       return peer.say("POST /app/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000\r\n\r\n") &&
              peer.say({large, kLong});
     },
     [](StreamPeer& peer) { return peer.hears_head("200") && peer.hears("hello"); }},
    {"a long response",
     [](StreamPeer& peer) {
       return peer.say("GET /app/long HTTP/1.1\r\nHost: localhost\r\n\r\n") && peer.hears_head("200");
     },
     [](StreamPeer& peer) { return peer.finds("xend"); }},
    {"a response that pauses",
     [](StreamPeer& peer) {
       return peer.say("GET /app/pause HTTP/1.1\r\nHost: localhost\r\n\r\n") && peer.hears_head("200") &&
              peer.hears("abc");
     },
     [](StreamPeer& peer) { return peer.hears("def"); }},
    {"a slow reader",
     [](StreamPeer& peer) {
       return peer.say("GET /app/slow HTTP/1.1\r\nHost: localhost\r\n\r\n") && peer.hears_head("200") &&
              rests(&Forwarder::streams);
     },
     [](StreamPeer& peer) { return peer.finds("xend") && gets(peer); }},
    {"a slow reader that takes trailers",
     [](StreamPeer& peer) {
       return peer.say("GET /app/trail HTTP/1.1\r\nHost: localhost\r\nTE: trailers\r\n\r\n") &&
              peer.hears_head("200") && rests(&Forwarder::streams);
     },
     // The end may be a chunk of its own.
     [](StreamPeer& peer) { return peer.finds("end\r\n0\r\nX-Sum: 1\r\n\r\n") && gets(peer); }},
    {"a slow upload",
     [](StreamPeer& peer) {
       return peer.say("POST /app/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000\r\n\r\nfirst") &&
              rests(&Forwarder::waiting);
     },
     [](StreamPeer& peer) { return peer.say({large, kLong - 5}) && peer.hears_head("200") && peer.hears("hello"); }},
    {"an event stream",
     [](StreamPeer& peer) {
       return peer.say("GET /app/events HTTP/1.1\r\nHost: localhost\r\n\r\n") && peer.hears_head("200") &&
              peer.finds("data: one\n\n");
     },
     [](StreamPeer& peer) { return peer.finds("data: two\n\n") && peer.finds("\r\n0\r\n\r\n") && gets(peer); }},
    {"a tunnel",
     [](StreamPeer& peer) {
       return peer.say("GET /app/ HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n") &&
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
    unsent_bytes = 4096;
    return true;
  }
  void release() override {
    g_forwarder.reset();
    g_upstreams.reset();
  }
  std::size_t kept() const override { return g_forwarder->streams(); }
  void setup() override {
    FaultyStreams::setup();
    g_upstream.emplace(serve_from_upstream);
  }
  void teardown() override {
    FaultyStreams::teardown();
    g_upstream.reset();
  }
};

TEST_GROUP_BASE(ProxyFaults, ProxyFaultsServer) {};

TEST(ProxyFaults, any_failure_ends_one_exchange) {
  whatever_fails(kLives);
  met({Call::charge, Call::close, Call::recv, Call::send});
}

TEST(ProxyFaults, a_server_stops_though_something_fails) {
  // The last two rest.
  a_stop_while_something_fails(std::span(kLives).last(2));
}

}  // namespace proxy_faults_test
