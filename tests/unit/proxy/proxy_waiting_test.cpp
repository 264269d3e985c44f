// Exchanges that wait for an upstream: they hold no place among the active, and a route may bound them.

#include <CppUTest/TestHarness.h>
#include <poll.h>

#include <optional>

#include "tests/support/dead_host.h"
#include "tests/unit/proxy/gateway.h"

namespace proxy_waiting_test {

using namespace coir::test;
using namespace std::chrono_literals;
using coir::Address;
using coir::http::Upstreams;

namespace {

constexpr int kWaiting = 9;
const ServerOptions kFew{.max_active = 2};
constexpr std::string_view kWait = "GET /wait HTTP/1.1\r\nHost: t\r\n\r\n";
constexpr std::string_view kFine = "GET /fine HTTP/1.1\r\nHost: t\r\n\r\n";

// Hung is an upstream that says nothing to /wait until it is released.
struct Hung {
  std::atomic<int> heard{0};
  std::atomic<bool> released{false};

  ScriptedServer::Script script() {
    return [this](Peer& peer) {
      for (std::string_view head = peer.hear(); !head.empty(); head = peer.hear()) {
        if (head.find("/wait") != head.npos) {
          ++heard;
          while (!released) ::poll(nullptr, 0, 1);
        }
        if (!peer.say(kHello)) return;
      }
    };
  }
  ~Hung() { released = true; }
};

// gets_content tells whether so many bytes come behind a head, of which the last are "whole".
bool gets_content(Client& client, std::size_t size) {
  if (!client.hear("\r\n\r\n")) return false;
  const std::string_view heard = heard_by(client);
  std::size_t left = size - (heard.size() - heard.find("\r\n\r\n") - 4);
  char text[512], last[5] = {};
  while (left != 0) {
    const auto got = client.stream.read(std::span(text).first(std::min(left, sizeof text)), soon());
    if (!got) return false;
    for (std::size_t i = 0; i < *got; ++i, --left) {
      if (left <= sizeof last) last[sizeof last - left] = text[i];
    }
  }
  return std::string_view(last, sizeof last) == "whole";
}

}  // namespace

TEST_GROUP_BASE(ProxyWaiting, Gateway) {
  std::array<std::optional<Client>, kWaiting> clients;

  void all_ask(const Address& address, std::string_view request = kWait) {
    for (auto& client : clients) expect(client.emplace(address).say(request));
  }

  // crowd has more clients than there are places wait for the upstream, each with `request`, and one more ask it for
  // something that it answers.
  void crowd(std::string_view request) {
    Hung hung;
    through(hung.script(), {}, kFew, [&](Server&, const Address& address, Stage&) {
      hung.heard = 0;
      hung.released = false;
      all_ask(address, request);
      expect(until([&] { return hung.heard == kWaiting; }, soon()));
      Client other(address);
      expect(other.say(kFine) && other.hear("hello"));
      hung.released = true;
      for (auto& client : clients) expect(client->hear("hello") && client->say(kFine) && client->hear("hello"));
      for (auto& client : clients) client.reset();
    });
  }
};

TEST(ProxyWaiting, requests_that_wait_for_an_upstream_hold_no_place) {
  crowd(kWait);
}

TEST(ProxyWaiting, uploads_that_wait_for_an_answer_hold_no_place) {
  crowd("POST /wait HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
}

// Each wait for it is short, and all together are long.
// While nobody wants them the last to come keep their buffers.
TEST(ProxyWaiting, a_server_that_drops_what_comes_has_exchanges_hold_no_buffers) {
  through(keep_nothing, {.connect = 1h}, kFew, [&](Server&, const Address& address, Stage& stage) {
    const coir::test::DeadHost dead("127.0.0.2", 0);
    expect(dead.usable());
    char url[32];
    auto upstreams = *Upstreams::create(coir::format(url, "http://127.0.0.2:", dead.port()), {.connect = 0ms});
    stage.group = &upstreams.group();
    const std::size_t before = coir::account::http.used();
    all_ask(address);
    expect(until([&] { return upstreams.state().in_use == kWaiting; }, soon()));
    expect(coir::account::http.used() - before < (kFew.max_active + 1) * Server::request_bytes());
    for (auto& client : clients) client.reset();
    expect(until([&] { return upstreams.state().in_use == 0; }, soon()));
  });
}

TEST(ProxyWaiting, a_line_for_a_server_has_exchanges_hold_no_buffers) {
  Hung hung;
  through(hung.script(), {.connect = 1h}, kFew, [&](Server&, const Address& address, Stage& stage) {
    hung.heard = 0;
    hung.released = false;
    char url[32];
    auto upstreams = *Upstreams::create(coir::format(url, "http://127.0.0.1:", stage.port), {.most_in_use = 1});
    stage.group = &upstreams.group();
    const std::size_t before = coir::account::http.used();
    all_ask(address);
    expect(until([&] { return upstreams.state().waiting == kWaiting - 1; }, soon()));
    expect(coir::account::http.used() - before < (kFew.max_active + 1) * Server::request_bytes());
    hung.released = true;
    for (auto& client : clients) {
      expect(client->hear("hello"));
      client.reset();
    }
    expect(until([&] { return upstreams.state().in_use == 0; }, soon()));
  });
}

TEST(ProxyWaiting, responses_that_come_byte_by_byte_hold_no_place) {
  constexpr std::size_t kContent = 4000;
  std::atomic<bool> released{false};
  std::atomic<int> unreleased{0};
  const auto script = [&](Peer& peer) {
    for (std::string_view head = peer.hear(); !head.empty(); head = peer.hear()) {
      if (head.find("/wait") == head.npos) {
        if (!peer.say(kHello)) return;
        continue;
      }
      if (!peer.say("HTTP/1.1 200 OK\r\nContent-Length: 4005\r\n\r\n")) return;
      std::size_t sent = 0;
      for (; !released && sent < kContent && peer.say("x"); ++sent) ::poll(nullptr, 0, 2);
      if (!released) ++unreleased;
      static const char rest[kContent] = {};
      if (!peer.say({rest, kContent - sent}) || !peer.say("whole")) return;
    }
  };
  through(script, {}, kFew, [&](Server&, const Address& address, Stage&) {
    released = false;
    all_ask(address);
    Client other(address);
    expect(other.say(kFine) && other.hear("hello"));
    // So it has not waited for the end of one.
    expect(unreleased == 0);
    released = true;
    for (auto& client : clients) {
      expect(gets_content(*client, kContent + 5));
      client.reset();
    }
  });
}

TEST(ProxyWaiting, a_client_that_leaves_ends_the_wait) {
  Hung hung;
  through(hung.script(), [&](const Address& address, Stage& stage) {
    hung.heard = 0;
    hung.released = false;
    const auto before = stage.forwarder->counters().cancelled.load();
    Client client(address);
    expect(client.say(kWait) && until([&] { return hung.heard == 1; }, soon()));
    client.reset();
    expect(until([&] { return stage.forwarder->counters().cancelled.load() == before + 1; }, soon()));
    hung.released = true;
  });
}

TEST(ProxyWaiting, one_more_than_may_wait_is_503_at_once) {
  Hung hung;
  coir::Atomic<std::uint32_t> waiting = 0;
  const ForwardRules rules{.max_waiting = 2, .waiting = &waiting};
  through(hung.script(), rules, [&](const Address& address, Stage& stage) {
    hung.heard = 0;
    hung.released = false;
    Client first(address), second(address), third(address);
    expect(first.say(kWait) && second.say(kWait) && until([&] { return hung.heard == 2; }, soon()));
    expect(third.say(kFine) && third.hear("503 Service Unavailable") && third.hear("Retry-After: 1\r\n"));
    const auto& failures = stage.forwarder->counters().failures;
    expect(failures[static_cast<std::size_t>(coir::http::ForwardFailure::crowded)].load() >= 1);
    hung.released = true;
    expect(first.hear("hello") && second.hear("hello"));
    // A client with its answer waits no more.
    expect(first.say(kFine) && first.hear("hello"));
    expect(until([&] { return waiting.load() == 0; }, soon()));
  });
}

}  // namespace proxy_waiting_test
