// A hub and the server that it belongs to: memory, TLS, the kernel's timeout, pressure, the end.

#include <CppUTest/TestHarness.h>
#include <coir/atomic.h>
#include <coir/detail/accounts.h>
#include <coir/events.h>
#include <coir/fiber.h>
#include <coir/pressure.h>
#include <coir/program.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <optional>
#include <string_view>
#include <utility>

#include "hub/hub.h"
#include "tests/support/child.h"
#include "tests/support/until.h"
#include "tests/unit/stream/follower.h"

namespace event_hub_server_test {

using namespace coir::http;
using namespace coir::test;
using namespace std::chrono_literals;
using coir::Deadline;
using coir::ErrorCode;

namespace {

bool has_input(coir::Stream& stream) {
  char byte;
  return recv(stream.fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

std::string_view large_text() {
  static char text[60'000];
  __builtin_memset(text, 'x', sizeof text);
  return {text, sizeof text};
}

// Doorway is a hub for one member. An exchange that it admits waits before its keep until two have asked.
class Doorway final : public Hub {
 public:
  Doorway() : Hub("doorway") {}
  ~Doorway() { leave_all(); }

  void answer(Exchange& exchange) {
    Place place = admit(exchange, 1);
    asked_.fetch_add(1);
    if (!place) return;
    until([this] { return asked_.load() == 2; });
    exchange.start(200);
    if (open(exchange, Opening::content)) static_cast<void>(keep(exchange, 0, 0, std::move(place)));
  }

 private:
  coir::Atomic<int> asked_ = 0;
};

}  // namespace

TEST_GROUP_BASE(EventHubServer, EventServers) {
  // with_hub calls `body` with a hub whose server answers every request with it.
  template <class Body>
  void with_hub(const EventHubOptions& options, const coir::TlsContext* tls, Body body) {
    EventHub hub(options);
    with_server({.handler = hub, .max_connections = 2048, .evict_after = 0ms}, tls,
                [&](Server& server, const coir::Address& address) { body(hub, server, address); });
    expect(hub.subscribers() == 0);
  }
  template <class Body>
  void with_hub(const EventHubOptions& options, Body body) {
    with_hub(options, nullptr, body);
  }
};

TEST(EventHubServer, subscribers_come_by_tls) {
  everywhere([&] {
    const coir::TlsContext tls = authority().server(), trusts = authority().client();
    with_hub({}, &tls, [&](EventHub& hub, Server&, const coir::Address& address) {
      Follower client(address, &trusts);
      expect(client.ask("/") && client.hears(":\n\n"));
      for (const std::string_view text : {"1", "2", "3"}) expect(hub.publish({.data = text}).has_value());
      expect(client.hears_next("data: 1\n\ndata: 2\n\ndata: 3\n\n"));
      client.close();
      until([&] { return hub.subscribers() == 0; });
    });
  });
}

TEST(EventHubServer, the_kernel_gives_up_a_subscriber_that_acknowledges_nothing) {
  everywhere([&] {
    with_hub({.vanished_after = 12'345ms}, [&](EventHub&, Server&, const coir::Address& address) {
      Follower client(address);
      expect(client.ask("/") && client.hears(":\n\n"));
      expect(far_option(client.stream().tcp().fd(), IPPROTO_TCP, TCP_USER_TIMEOUT) == 12'345);
    });
  });
}

TEST(EventHubServer, a_thousand_subscribers_get_every_event_hold_no_session_and_hold_up_nobody) {
  constexpr int kSubscribers = 1000, kAsked = 10;
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  static std::optional<Follower> clients[kSubscribers];
  const auto ended = coir::run_until_idle({.workers = 1}, [&] {
    with_hub({}, [&](EventHub& hub, Server& server, const coir::Address& address) {
      for (auto& client : clients) expect(client.emplace(address).ask("/") && client->hears(":\n\n"));
      until([&] { return server.gauges().active == 0 && server.gauges().kept == kSubscribers; });
      expect(hub.subscribers() == kSubscribers && server.gauges().open == kSubscribers);
      for (const std::string_view text : {"1", "2", "3"}) expect(hub.publish({.data = text}).has_value());
      for (auto& client : clients) expect(client->hears_next("data: 1\n\ndata: 2\n\ndata: 3\n\n"));
      // This fiber runs when some have an event and others do not: the sender gives the worker away in between. It is the only
      // worker: of two that share a processor, this fiber's may find each event with nobody or with all. Which clients are
      // served first is not known: one may rest after those that came later.
      bool midway = false;
      for (int event = 0; event < 100 && !midway; ++event) {
        expect(hub.publish({.data = "4"}).has_value());
        for (int have = 0; have < kAsked; midway = midway || (have > 0 && have < kAsked)) {
          coir::yield();
          have = 0;
          for (int i = 0; i < kAsked; ++i) have += has_input(clients[i * (kSubscribers / kAsked)]->stream());
        }
        for (auto& client : clients) expect(client->hears_next("data: 4\n\n"));
      }
      expect(midway);
      for (auto& client : clients) client.reset();
      until([&] { return hub.subscribers() == 0; });
    });
  });
  check();
  CHECK_TRUE(ended.has_value());
}

TEST(EventHubServer, short_memory_evicts_subscribers) {
  everywhere([&] {
    with_hub({}, [&](EventHub& hub, Server& server, const coir::Address& address) {
      Follower client(address);
      expect(client.ask("/") && client.hears(":\n\n"));
      until([&] { return server.gauges().active == 0; });
      // As much as this there never is.
      until([&] {
        coir::Pressure::make_room(coir::account::connections, SIZE_MAX);
        return hub.subscribers() == 0;
      });
      expect(client.hears_end());
      expect(server.counters().evicted.load() == 1);
    });
  });
}

TEST(EventHubServer, a_stop_ends_subscribers_that_do_not_read_too) {
  everywhere([&] {
    static std::optional<Follower> client;
    with_hub({.history_bytes = 4 << 20, .history_events = 1024},
             [&](EventHub& hub, Server&, const coir::Address& address) {
               client.emplace(address);
               expect(client->ask("/") && client->hears(":\n\n"));
               // More than the kernel takes, and no more than the history holds: it waits for room.
               for (int i = 0; i < 60; ++i) expect(hub.publish({.data = large_text()}).has_value());
               expect(hub.subscribers() == 1 && hub.dropped() == 0);
             });
    client.reset();
  });
}

TEST(EventHubServer, a_subscriber_that_reads_nothing_is_cut_off_and_can_tell) {
  everywhere([&] {
    with_hub({.history_bytes = 256 * 1024}, [&](EventHub& hub, Server&, const coir::Address& address) {
      Follower client(address);
      expect(client.ask("/") && client.hears(":\n\n"));
      until([&] { return hub.subscribers() == 1; });
      // The hub's fiber has mostly done what it could before the next comes: the kernel is full first, and then the history.
      for (const Deadline enough = patience(); hub.subscribers() == 1 && !enough.passed();) {
        expect(hub.publish({.data = large_text()}).has_value());
        coir::test::until_polled();
      }
      // A subscriber leaves the list first, and is counted then.
      expect(until([&] { return hub.dropped() == 1; }));
      // It never takes what it has got for all there was.
      expect(client.end() == ErrorCode::closed);
    });
  });
}

TEST(EventHubServer, a_request_for_the_head_alone_starts_nothing) {
  everywhere([&] {
    with_hub({}, [&](EventHub&, Server&, const coir::Address& address) {
      Follower client(address);
      expect(client.ask("/", "Connection: close\r\n", "HEAD") && client.hears_head(" 200 "));
    });
  });
}

// Either of a hub and its server may go first.
TEST(EventHubServer, a_hub_that_is_destroyed_disconnects_its_subscribers_and_the_server_goes_on) {
  everywhere([&] {
    for (const bool secure : {false, true}) {
      const coir::TlsContext tls = authority().server(), trusts = authority().client();
      std::optional<EventHub> hub;
      hub.emplace(EventHubOptions{.history_bytes = 4 << 20, .history_events = 1024});
      const auto handler = [&hub](Exchange& exchange) { hub ? (*hub)(exchange) : exchange.respond_status(410); };
      with_server({.handler = handler}, secure ? &tls : nullptr, [&](Server& server, const coir::Address& address) {
        Follower idle(address, secure ? &trusts : nullptr), full(address, secure ? &trusts : nullptr);
        expect(full.ask("/") && full.hears(":\n\n"));
        // One waits for room, the other has heard everything.
        for (int i = 0; i < 60; ++i) expect(hub->publish({.data = large_text()}).has_value());
        expect(idle.ask("/") && idle.hears(":\n\n"));
        expect(hub->subscribers() == 2 && hub->dropped() == 0);
        hub.reset();
        expect(idle.hears_end());
        static_cast<void>(full.end());
        expect(server.gauges().kept == 0);
        Follower late(address, secure ? &trusts : nullptr);
        expect(late.ask("/", "Connection: close\r\n") && late.hears_head(" 410 "));
      });
    }
  });
}

TEST(EventHubServer, a_hub_outlives_its_server_and_serves_the_next) {
  everywhere([&] {
    EventHub hub;
    for (int turn = 0; turn < 2; ++turn) {
      with_server({.handler = hub}, [&](Server&, const coir::Address& address) {
        Follower client(address);
        expect(client.ask("/") && client.hears(":\n\n"));
        expect(hub.publish({.data = "1"}) && client.hears("data: 1\n\n"));
      });
      expect(hub.subscribers() == 0);
    }
  });
}

// A run that is shut down cuts its connections off. Then the server is destroyed, and the hub before or after it.
TEST(EventHubServer, after_a_run_that_was_cut_off_either_may_go_first) {
  for (const bool hub_first : {true, false}) {
    const ChildEnd end = in_child([&] {
      std::optional<EventHub> hub;
      hub.emplace();
      std::optional<Server> server;
      std::optional<Follower> client;
      const int status = coir::run([&] {
        server.emplace(*Server::create({.handler = *hub}));
        auto listener = *coir::TcpListener::listen(*coir::Address::parse("127.0.0.1:0"));
        const coir::Address address = listener.local_address();
        if (!server->add(std::move(listener)) || !server->start()) return 9;
        if (!client.emplace(address).ask("/") || !client->hears(":\n\n")) return 9;
        if (!until([&] { return server->gauges().active == 0; })) return 9;
        coir::shutdown();
        return 0;
      });
      if (hub_first) hub.reset();
      server.reset();
      hub.reset();
      return status;
    });
    LONGS_EQUAL(0, end.status);
    STRCMP_EQUAL("", end.output);
  }
}

TEST(EventHubServer, two_that_ask_at_the_same_time_are_never_both_the_last_member) {
  everywhere([&] {
    Doorway doorway;
    with_server({.handler = [&](Exchange& exchange) { doorway.answer(exchange); }}, nullptr,
                [&](Server&, const coir::Address& address) {
                  Follower one(address), other(address);
                  expect(one.ask("/") && other.ask("/"));
                  const bool first = one.hears_head("HTTP/1.1 200 ");
                  expect(first != other.hears_head("HTTP/1.1 200 "));
                  expect((first ? other : one).hears_head("HTTP/1.1 503 "));
                  until([&] { return doorway.size() == 0; });
                });
  });
}

}  // namespace event_hub_server_test
