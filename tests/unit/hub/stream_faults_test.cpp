// Want of memory or descriptors at any one point of the life of a hub's subscriber and of an event stream: the n-th
// charge to the ledger is refused, or the n-th call to the kernel of a kind fails, for n = 1, 2, 3 ... until a life meets
// none. The client is refused or its connection ends, never left waiting; the next lives as if nothing had been; nothing
// is left over.

#include <coir/events.h>
#include <coir/fiber.h>

#include <optional>

#include "tests/unit/http/faulty_streams.h"

namespace stream_faults_test {

using namespace coir::http;
using namespace coir::test;
using namespace std::chrono_literals;
using coir::Deadline;

namespace {

constexpr std::string_view kEnd = "data: the end\n";
// More than the kernel takes for a client that does not read, and no more than the history holds.
constexpr std::size_t kLargeText = 60'000;
constexpr int kLargeEvents = 8;

std::optional<EventHub> g_hub, g_deep;
std::atomic<int> g_streaming;

void stream(Exchange& exchange) {
  auto stream = EventStream::open(exchange, {.keep_alive = 2ms});
  if (!stream) return;
  ++g_streaming;
  if (stream->send({.data = "one", .id = "1"}) && stream->pause(Deadline::after(5ms)) &&
      stream->send({.data = {large, kLargeText}})) {
    static_cast<void>(stream->send({.data = "the end", .id = "2"}));
  }
  --g_streaming;
}

// The handler of a stream that rests until its client has gone.
void stay(Exchange& exchange) {
  auto stream = EventStream::open(exchange, {.keep_alive = 2ms});
  if (!stream) return;
  ++g_streaming;
  static_cast<void>(stream->pause(Deadline::never()));
  --g_streaming;
}

bool answer(Exchange& exchange) {
  const std::string_view path = exchange.request().path;
  if (path == "/feed") return (*g_hub)(exchange), true;
  if (path == "/deep") return (*g_deep)(exchange), true;
  if (path == "/stream") return stream(exchange), true;
  if (path == "/stay") return stay(exchange), true;
  if (path == "/publish") {
    const bool told = g_hub->publish({.data = "news"}) && g_hub->publish({.data = "the end", .id = "2"});
    exchange.close_after();
    return exchange.respond_status(told ? 204 : 500), true;
  }
  if (path == "/publish-much") {
    bool told = true;
    for (int i = 0; i < kLargeEvents; ++i) told = told && g_deep->publish({.data = {large, kLargeText}});
    told = told && g_deep->publish({.data = "the end", .id = "2"});
    exchange.close_after();
    return exchange.respond_status(told ? 204 : 500), true;
  }
  return false;
}

// publish asks until it is done: it may be this that meets the failure.
bool publish(StreamPeer& peer, std::string_view request) {
  for (int attempt = 0; attempt < 3; ++attempt) {
    StreamPeer publisher(peer.port());
    if (publisher.say(request) && publisher.hears_head("204")) return true;
  }
  return false;
}

bool subscribes(StreamPeer& peer, std::string_view request) {
  return peer.say(request) && peer.hears_head("200") && peer.finds(":\n\n");
}

constexpr StreamLife kLives[] = {
    {"a subscriber", [](StreamPeer& peer) { return subscribes(peer, "GET /feed HTTP/1.1\r\nHost: t\r\n\r\n"); },
     [](StreamPeer& peer) {
       return publish(peer, "GET /publish HTTP/1.1\r\nHost: t\r\n\r\n") && peer.finds("data: news\n\n") &&
              peer.finds(kEnd) && peer.finds(":\n\n");
     }},
    {"a subscriber that comes back too late",
     [](StreamPeer& peer) {
       return subscribes(peer, "GET /feed HTTP/1.1\r\nHost: t\r\nLast-Event-ID: 0\r\n\r\n") &&
              peer.finds("event: missed\n");
     },
     [](StreamPeer&) { return true; }},
    {"a subscriber that is slow",
     [](StreamPeer& peer) { return subscribes(peer, "GET /deep HTTP/1.1\r\nHost: t\r\n\r\n"); },
     [](StreamPeer& peer) {
       return publish(peer, "GET /publish-much HTTP/1.1\r\nHost: t\r\n\r\n") && peer.finds(kEnd);
     },
     4096},
    {"a handler's stream", [](StreamPeer& peer) { return subscribes(peer, "GET /stay HTTP/1.1\r\nHost: t\r\n\r\n"); },
     [](StreamPeer& peer) { return peer.finds(":\n\n") && peer.finds(":\n\n"); }},
    {"a handler's stream that ends",
     [](StreamPeer& peer) { return subscribes(peer, "GET /stream HTTP/1.1\r\nHost: t\r\n\r\n"); },
     [](StreamPeer& peer) { return peer.finds("data: one\n\n") && peer.finds(kEnd) && peer.ends(); }},
};

}  // namespace

struct StreamFaultsServer : FaultyStreams {
  bool prepare() override {
    g_hub.emplace(EventHubOptions{.keep_alive = 5ms, .max_subscribers = 8});
    g_deep.emplace(EventHubOptions{.history_bytes = 1 << 20, .history_events = 64});
    site.also = answer;
    return true;
  }
  void release() override {
    g_hub.reset();
    g_deep.reset();
  }
  std::size_t kept() const override {
    return g_hub->subscribers() + g_deep->subscribers() + static_cast<std::size_t>(g_streaming);
  }
};

TEST_GROUP_BASE(StreamFaults, StreamFaultsServer) {};

TEST(StreamFaults, any_failure_ends_one_stream) {
  whatever_fails(kLives);
  met({Call::charge, Call::close, Call::recv, Call::send, Call::setsockopt});
}

TEST(StreamFaults, a_server_stops_though_something_fails) {
  // A subscriber and a handler's stream: the others open alike.
  a_stop_while_something_fails(std::span(kLives).first(1));
  a_stop_while_something_fails(std::span(kLives).subspan(3, 1));
}

}  // namespace stream_faults_test
