// What a feed promises the server that it belongs to: memory, TLS, the kernel's timeout, pressure, the end.

#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/http/accounts.h>
#include <coir/http/feed.h>
#include <coir/pressure.h>
#include <coir/program.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <optional>
#include <string_view>

#include "tests/support/child.h"
#include "tests/support/until.h"
#include "tests/unit/stream/event_client.h"

namespace feed_server_test {

using namespace coir::http;
using namespace coir::test;
using namespace std::chrono_literals;
using coir::Deadline;
using coir::ErrorCode;

namespace {

void follow(Exchange& exchange) {
  exchange.context<Feed>().subscribe(exchange);
}

bool has_input(coir::Stream& stream) {
  char byte;
  return recv(stream.fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

std::string_view large_text() {
  static char text[60'000];
  __builtin_memset(text, 'x', sizeof text);
  return {text, sizeof text};
}

}  // namespace

TEST_GROUP_BASE(FeedServer, EventServers) {
  // with_feed calls `body` with a feed whose server answers every request with it.
  template <class Body>
  void with_feed(const FeedOptions& options, const coir::TlsContext* tls, Body body) {
    auto feed = Feed::create(options);
    with_server({.handler = follow, .context = &*feed, .max_connections = 2048, .evict_after = 0ms}, tls,
                [&](Server& server, const coir::Address& address) { body(*feed, server, address); });
    expect(feed->subscribers() == 0);
  }
  template <class Body>
  void with_feed(const FeedOptions& options, Body body) {
    with_feed(options, nullptr, body);
  }
};

TEST(FeedServer, subscribers_come_by_tls) {
  everywhere([&] {
    const coir::TlsContext tls = authority().server(), trusts = authority().client();
    with_feed({}, &tls, [&](Feed& feed, Server&, const coir::Address& address) {
      EventClient client(address, &trusts);
      expect(client.ask("/") && client.hears(":\n\n"));
      for (const std::string_view text : {"1", "2", "3"}) expect(feed.publish({.data = text}).has_value());
      expect(client.hears_next("data: 1\n\ndata: 2\n\ndata: 3\n\n"));
      client.close();
      until([&] { return feed.subscribers() == 0; });
    });
  });
}

TEST(FeedServer, the_kernel_gives_up_a_subscriber_that_acknowledges_nothing) {
  everywhere([&] {
    with_feed({.vanished_after = 12'345ms}, [&](Feed&, Server&, const coir::Address& address) {
      EventClient client(address);
      expect(client.ask("/") && client.hears(":\n\n"));
      unsigned timeout = 0;
      socklen_t size = sizeof timeout;
      expect(getsockopt(far_end(client.stream().tcp()), IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, &size) == 0);
      expect(timeout == 12'345);
    });
  });
}

TEST(FeedServer, a_thousand_subscribers_get_every_event_hold_no_session_and_hold_up_nobody) {
  constexpr int kSubscribers = 1000;
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  static std::optional<EventClient> clients[kSubscribers];
  const auto ended = coir::run_until_idle({}, [&] {
    with_feed({}, [&](Feed& feed, Server& server, const coir::Address& address) {
      for (auto& client : clients) expect(client.emplace(address).ask("/") && client->hears(":\n\n"));
      until([&] { return server.gauges().active == 0 && server.gauges().kept == kSubscribers; });
      expect(feed.subscribers() == kSubscribers && server.gauges().open == kSubscribers);
      for (const std::string_view text : {"1", "2", "3"}) expect(feed.publish({.data = text}).has_value());
      for (auto& client : clients) expect(client->hears_next("data: 1\n\ndata: 2\n\ndata: 3\n\n"));
      // This fiber runs when some have an event and others do not: the sender gives the worker away in between.
      bool midway = false;
      for (int event = 0; event < 100 && !midway; ++event) {
        expect(feed.publish({.data = "4"}).has_value());
        for (bool first = false, last = false; !first || !last; midway = midway || first != last) {
          coir::yield();
          first = has_input(clients[0]->stream());
          last = has_input(clients[kSubscribers - 1]->stream());
        }
        for (auto& client : clients) expect(client->hears_next("data: 4\n\n"));
      }
      expect(midway);
      for (auto& client : clients) client.reset();
      until([&] { return feed.subscribers() == 0; });
    });
  });
  check();
  CHECK_TRUE(ended.has_value());
}

TEST(FeedServer, short_memory_evicts_subscribers) {
  everywhere([&] {
    with_feed({}, [&](Feed& feed, Server& server, const coir::Address& address) {
      EventClient client(address);
      expect(client.ask("/") && client.hears(":\n\n"));
      until([&] { return server.gauges().active == 0; });
      // As much as this there never is.
      until([&] {
        coir::Pressure::make_room(coir::account::connections, SIZE_MAX);
        return feed.subscribers() == 0;
      });
      expect(client.hears_end());
      expect(server.counters().evicted.load() == 1);
    });
  });
}

TEST(FeedServer, a_stop_ends_subscribers_that_do_not_read_too) {
  everywhere([&] {
    static std::optional<EventClient> client;
    with_feed({.history_bytes = 4 << 20, .history_events = 1024},
              [&](Feed& feed, Server&, const coir::Address& address) {
                client.emplace(address);
                expect(client->ask("/") && client->hears(":\n\n"));
                // More than the kernel takes, and no more than the history holds: it waits for room.
                for (int i = 0; i < 60; ++i) expect(feed.publish({.data = large_text()}).has_value());
                expect(feed.subscribers() == 1 && feed.fallen_off() == 0);
              });
    client.reset();
  });
}

TEST(FeedServer, a_subscriber_that_reads_nothing_is_cut_off_and_can_tell) {
  everywhere([&] {
    with_feed({.history_bytes = 256 * 1024}, [&](Feed& feed, Server&, const coir::Address& address) {
      EventClient client(address);
      expect(client.ask("/") && client.hears(":\n\n"));
      until([&] { return feed.subscribers() == 1; });
      // The sender has done what it could before the next comes: the kernel is full first, and then the history.
      int published = 0;
      for (; feed.subscribers() == 1 && published < 500; ++published) {
        expect(feed.publish({.data = large_text()}).has_value());
        coir::test::until_polled();
      }
      // A subscriber leaves the list first, and is counted then.
      expect(published < 500 && until([&] { return feed.fallen_off() == 1; }));
      // It never takes what it has got for all there was.
      expect(client.end() == ErrorCode::closed);
    });
  });
}

TEST(FeedServer, a_request_for_the_head_alone_starts_nothing) {
  everywhere([&] {
    with_feed({}, [&](Feed&, Server&, const coir::Address& address) {
      EventClient client(address);
      expect(client.ask("/", "Connection: close\r\n", "HEAD") && client.hears_head(" 200 "));
    });
  });
}

TEST(FeedServer, a_feed_that_is_destroyed_while_it_is_followed_says_so) {
  const ChildEnd end = in_child([&] {
    return coir::run([&]() -> int {
      std::optional<Feed> feed;
      auto created = Feed::create({});
      feed.emplace(std::move(*created));
      with_server({.handler = follow, .context = &*feed}, [&](Server&, const coir::Address& address) {
        EventClient client(address);
        static_cast<void>(client.ask("/") && client.hears(":\n\n"));
        feed.reset();
      });
      return 0;
    });
  });
  CHECK_TRUE(end.status != 0);
  CHECK_TRUE(end.wrote("a feed is destroyed before its server has stopped"));
}

}  // namespace feed_server_test
