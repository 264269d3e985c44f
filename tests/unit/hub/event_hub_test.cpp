// EventHub's promises. Subscribers are real clients; what is published comes by a request, so that the build without fibers,
// where the hub belongs to the serving thread, is told the same.

#include <CppUTest/TestHarness.h>
#include <coir/config.h>
#include <coir/detail/accounts.h>
#include <coir/events.h>
#include <coir/http/server.h>
#include <coir/program.h>
#include <coir/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

#if !COIR_NO_ASYNC
#include <coir/fiber.h>
#include <coir/nursery.h>
#endif

#include "tests/support/child.h"
#include "tests/support/until.h"
#include "tests/unit/http/run_beside.h"

namespace event_hub_test {

using namespace std::chrono_literals;
using coir::Address;
using coir::Deadline;
using coir::ErrorCode;
using coir::TcpListener;
using coir::TcpStream;
using coir::http::EventHub;
using coir::http::EventHubOptions;
using coir::http::Exchange;
using coir::http::Server;
using coir::http::ServerOptions;
using coir::test::until;

namespace {

Deadline soon() {
  return Deadline::after(60s);
}

// Client is one connection, and what it has heard. On a fiber: a check that fails there is kept in `broken`.
struct Client {
  TcpStream stream;
  std::string heard;

  static Client to(const Address& address) {
    auto connected = TcpStream::connect(address, soon());
    if (!connected) FAIL("cannot connect");
    return Client{std::move(*connected), {}};
  }
  void say(std::string_view text) { CHECK(stream.write(text, soon()).has_value()); }
  bool hear() {
    char piece[16384];
    auto got = stream.read(piece, soon());
    if (got) heard.append(piece, *got);
    if (!got && got.error() == ErrorCode::timed_out) FAIL("a client waits in vain");
    return got.has_value();
  }
  void hear_until(std::string_view text) {
    while (heard.find(text) == std::string::npos) {
      if (!hear()) FAIL(heard.c_str());
    }
  }
  bool has(std::string_view text) const { return heard.find(text) != std::string::npos; }
  // body is what follows the head.
  std::string_view body() const {
    const std::size_t end = heard.find("\r\n\r\n");
    return end == std::string::npos ? std::string_view() : std::string_view(heard).substr(end + 4);
  }
};

struct Stage {
  EventHub* hub = nullptr;
  Server* server = nullptr;
  Address address;

  Client ask(std::string_view head) const {
    Client client = Client::to(address);
    std::string text(head);
    text += " HTTP/1.1\r\nHost: localhost\r\n\r\n";
    client.say(text);
    return client;
  }
  // subscribe returns a subscriber that has had its first bytes.
  Client subscribe(std::string_view last_id = {}) const {
    Client client = Client::to(address);
    std::string text = "GET /events HTTP/1.1\r\nHost: localhost\r\n";
    if (!last_id.empty()) text += "Last-Event-ID: " + std::string(last_id) + "\r\n";
    client.say(text + "\r\n");
    client.hear_until("\n\n");
    return client;
  }
  // publish has an event published whose data and id are `text`.
  void publish(std::string_view text) const {
    Client client = Client::to(address);
    char head[128];
    snprintf(head, sizeof head,
             "POST /publish HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n",
             text.size());
    client.say(head);
    client.say(text);
    while (client.hear()) {
    }
    if (!client.has("204")) FAIL(client.heard.c_str());
  }
};

void handle(EventHub& hub, Exchange& exchange) {
  if (exchange.request().path != "/publish") return hub(exchange);
  const std::span<char> text = exchange.scratch();
  std::size_t size = 0;
  while (auto got = exchange.read_body(text.subspan(size))) size += *got;
  // The id is what stands before the first space.
  const std::string_view data(text.data(), size);
  const bool published =
      hub.publish({.data = data, .type = {}, .id = data.substr(0, data.find(' ')), .retry_ms = {}}).has_value();
  exchange.respond_status(published ? 204 : 500);
}

template <class Play>
void with_hub(const EventHubOptions& hub_options, ServerOptions options, Play play) {
  EventHub hub(hub_options);
  Stage stage;
  stage.hub = &hub;
  options.handler = [&hub](Exchange& exchange) { handle(hub, exchange); };
  auto server = Server::create(options);
  CHECK(server.has_value());
  stage.server = &*server;
  auto listener = TcpListener::listen(*Address::parse("127.0.0.1:0"));
  CHECK(listener.has_value());
  stage.address = listener->local_address();
  CHECK(server->add(std::move(*listener)).has_value());
  coir::test::run_beside(*server, [&] { play(stage); });
  LONGS_EQUAL(0, server->gauges().open);
  LONGS_EQUAL(0, hub.subscribers());
}
template <class Play>
void with_hub(const EventHubOptions& hub_options, Play play) {
  with_hub(hub_options, {}, play);
}

}  // namespace

TEST_GROUP(EventHub) {};

TEST(EventHub, answers_as_an_event_source_expects_and_sends_something_at_once) {
  with_hub({}, [](const Stage& stage) {
    const Client client = stage.subscribe();
    CHECK(client.has("HTTP/1.1 200 "));
    CHECK(client.has("Content-Type: text/event-stream\r\n"));
    CHECK(client.has("Cache-Control: no-store\r\n"));
    CHECK(client.has("X-Accel-Buffering: no\r\n"));
    CHECK(client.body() == ":\n\n");
  });
}

TEST(EventHub, tells_how_long_to_wait_before_connecting_anew) {
  with_hub({.retry = 2500ms}, [](const Stage& stage) { CHECK(stage.subscribe().body() == "retry: 2500\n\n"); });
}

TEST(EventHub, sends_what_is_published_to_every_subscriber_in_order) {
  with_hub({}, [](const Stage& stage) {
    Client clients[] = {stage.subscribe(), stage.subscribe(), stage.subscribe()};
    stage.publish("1");
    stage.publish("2 two\nlines");
    for (Client& client : clients) {
      client.hear_until("data: lines\n\n");
      CHECK(client.body() == ":\n\nid: 1\ndata: 1\n\nid: 2\ndata: 2 two\ndata: lines\n\n");
    }
  });
}

TEST(EventHub, a_new_subscriber_gets_what_comes_and_with_replay_what_is_remembered) {
  with_hub({}, [](const Stage& stage) {
    stage.publish("1");
    Client client = stage.subscribe();
    stage.publish("2");
    client.hear_until("data: 2\n\n");
    CHECK_FALSE(client.has("data: 1"));
  });
  with_hub({.replay = true}, [](const Stage& stage) {
    stage.publish("1");
    Client client = stage.subscribe();
    stage.publish("2");
    client.hear_until("data: 2\n\n");
    CHECK(client.body() == ":\n\nid: 1\ndata: 1\n\nid: 2\ndata: 2\n\n");
  });
}

TEST(EventHub, resumes_exactly_behind_the_last_event_id) {
  with_hub({}, [](const Stage& stage) {
    for (const char* text : {"1", "2", "3", "4"}) stage.publish(text);
    Client client = stage.subscribe("2");
    client.hear_until("data: 4\n\n");
    CHECK(client.body() == ":\n\nid: 3\ndata: 3\n\nid: 4\ndata: 4\n\n");
    Client up_to_date = stage.subscribe("4");
    stage.publish("5");
    up_to_date.hear_until("data: 5\n\n");
    CHECK(up_to_date.body() == ":\n\nid: 5\ndata: 5\n\n");
  });
}

TEST(EventHub, tells_a_resumption_behind_a_forgotten_event_and_sends_what_there_is) {
  with_hub({.history_events = 2, .missed = {.data = "load anew", .type = "gap", .id = {}, .retry_ms = {}}},
           [](const Stage& stage) {
             for (const char* text : {"1", "2", "3"}) stage.publish(text);
             Client client = stage.subscribe("1");
             client.hear_until("data: 3\n\n");
             CHECK(client.body() == ":\n\nevent: gap\ndata: load anew\n\nid: 2\ndata: 2\n\nid: 3\ndata: 3\n\n");
           });
}

TEST(EventHub, disconnects_who_is_slower_than_the_history_is_long_and_nobody_else) {
  with_hub({.history_bytes = 8192, .history_events = 8}, [](const Stage& stage) {
    Client slow = stage.subscribe();
    Client quick = stage.subscribe();
    int published = 0;
    // As much as the kernel's buffers take, and more.
    for (; stage.hub->dropped() == 0 && published < 20'000; ++published) {
      char text[3000];
      memset(text, 'x', sizeof text);
      const int digits = snprintf(text, sizeof text, "%d", published);
      text[digits] = ' ';
      stage.publish({text, sizeof text});
      char id[32];
      snprintf(id, sizeof id, "id: %d\n", published);
      quick.hear_until(id);
      quick.heard.erase(0, quick.heard.find(id));
    }
    CHECK_EQUAL(1, stage.hub->dropped());
    while (slow.hear()) {
    }
    // No gap: the events that it has had are the first ones.
    char first_missing[32];
    int number = 0;
    for (;; ++number) {
      snprintf(first_missing, sizeof first_missing, "id: %d\n", number);
      if (!slow.has(first_missing)) break;
    }
    CHECK(number < published);
    for (int behind = number; behind < published; ++behind) {
      snprintf(first_missing, sizeof first_missing, "id: %d\n", behind);
      CHECK_FALSE(slow.has(first_missing));
    }
    // The client sees the end before the hub has counted it.
    until([&] { return stage.hub->subscribers() == 1; });
  });
}

TEST(EventHub, notices_a_subscriber_that_hangs_up) {
  with_hub({}, [](const Stage& stage) {
    Client stays = stage.subscribe();
    {
      const Client goes = stage.subscribe();
      until([&] { return stage.hub->subscribers() == 2; });
    }
    until([&] { return stage.hub->subscribers() == 1; });
    stage.publish("1");
    stays.hear_until("data: 1\n\n");
  });
}

TEST(EventHub, drops_what_a_subscriber_says_but_not_for_ever) {
  with_hub({}, [](const Stage& stage) {
    Client client = stage.subscribe();
    client.say("GET /again HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stage.publish("1");
    client.hear_until("data: 1\n\n");
    CHECK(client.body() == ":\n\nid: 1\ndata: 1\n\n");
    const std::string talk(100'000, 'x');
    while (client.stream.write(talk, soon()).has_value()) {
    }
    until([&] { return stage.hub->subscribers() == 0; });
  });
}

TEST(EventHub, sends_comments_while_nothing_is_published) {
  with_hub({.keep_alive = 10ms}, [](const Stage& stage) {
    Client client = stage.subscribe();
    client.hear_until(":\n\n:\n\n:\n\n");
    stage.publish("1");
    client.hear_until("data: 1\n\n");
  });
}

TEST(EventHub, a_subscriber_is_kept_however_long_it_is_idle) {
  with_hub({.keep_alive = 50ms}, {.idle_timeout = 10ms}, [](const Stage& stage) {
    // A connection may be idle for too long before the client asks.
    Client client = stage.ask("GET /events");
    while (!client.hear()) client = stage.ask("GET /events");
    client.hear_until(":\n\n:\n\n:\n\n");
    CHECK_EQUAL(1, stage.hub->subscribers());
  });
}

TEST(EventHub, answers_other_methods) {
  with_hub({}, [](const Stage& stage) {
    Client post = stage.ask("POST /events");
    post.hear_until("\r\n\r\n");
    CHECK(post.has("HTTP/1.1 405 ") && post.has("Allow: GET, HEAD\r\n"));
    Client head = stage.ask("HEAD /events");
    head.hear_until("\r\n\r\n");
    CHECK(head.has("HTTP/1.1 200 ") && head.has("text/event-stream"));
    // The connection goes on.
    head.say("HEAD /events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    while (head.hear()) {
    }
    CHECK(head.heard.rfind("HTTP/1.1 200 ") > 0);
    CHECK_EQUAL(0, stage.hub->subscribers());
  });
}

TEST(EventHub, one_subscriber_too_many_is_answered_503) {
  with_hub({.max_subscribers = 1}, [](const Stage& stage) {
    const Client first = stage.subscribe();
    Client second = stage.ask("GET /events");
    second.hear_until("\r\n\r\n");
    CHECK(second.has("HTTP/1.1 503 ") && second.has("Retry-After: "));
  });
}

TEST(EventHub, many_subscribers_hold_no_session) {
  with_hub({}, [](const Stage& stage) {
    std::vector<Client> clients;
    for (int i = 0; i < 300; ++i) clients.push_back(stage.subscribe());
    until([&] { return stage.hub->subscribers() == clients.size(); });
    until([&] { return stage.server->gauges().active == 0; });
    CHECK_EQUAL(clients.size(), stage.server->gauges().open);
    stage.publish("1");
    for (Client& client : clients) client.hear_until("data: 1\n\n");
  });
}

TEST(EventHub, refuses_what_cannot_be_sent_and_goes_on) {
  with_hub({.history_bytes = 256}, [](const Stage& stage) {
    CHECK(stage.hub->publish({.data = "x", .type = "a\nb", .id = {}, .retry_ms = {}}).error() == ErrorCode::invalid);
    const std::string large(1000, 'x');
    CHECK(stage.hub->publish({.data = large, .type = {}, .id = {}, .retry_ms = {}}).error() == ErrorCode::limit);
    Client client = stage.subscribe();
    stage.publish("1");
    client.hear_until("data: 1\n\n");
  });
}

TEST(EventHub, the_end_of_the_server_is_the_end_of_the_streams) {
  Client* left = nullptr;
  with_hub({}, [&](const Stage& stage) {
    left = new Client(stage.subscribe());
    until([&] { return stage.hub->subscribers() == 1; });
  });
  while (left->hear()) {
  }
  CHECK(left->body() == ":\n\n");
  delete left;
}

// An option that cannot be right ends the program with a line that names it.
TEST(EventHub, wants_a_history_and_a_missed_event_that_can_be_sent) {
  const auto refused = [](const EventHubOptions& options, const char* option) {
    const auto end = coir::test::in_child([&] {
      const EventHub hub(options);
      return 0;
    });
    CHECK(end.status != 0 && end.wrote(option));
  };
  refused({.history_bytes = 0}, "history_bytes");
  refused({.history_events = 0}, "history_events");
  const std::string large(1024, 'x');
  refused({.missed = {.data = large, .type = {}, .id = {}, .retry_ms = {}}}, "`missed`");
  refused({.missed = {.data = {}, .type = "a\nb", .id = {}, .retry_ms = {}}}, "`missed`");
}

TEST(EventHub, without_memory_for_its_history_it_answers_503_and_publishes_nothing) {
  coir::account::streams.set_ceiling(0);
  with_hub({}, [](const Stage& stage) {
    Client client = stage.ask("GET /events");
    client.hear_until("\r\n\r\n");
    CHECK(client.has("HTTP/1.1 503 "));
    CHECK(stage.hub->publish({.data = "1", .type = {}, .id = {}, .retry_ms = {}}).error() == ErrorCode::no_memory);
  });
  coir::account::streams.set_ceiling(SIZE_MAX);
}

#if !COIR_NO_ASYNC

TEST(EventHub, events_of_many_publishers_reach_every_subscriber_whole_and_once) {
  with_hub({.history_bytes = 1 << 20, .history_events = 8192}, [](const Stage& stage) {
    constexpr int kPublishers = 4, kEach = 500, kSubscribers = 20;
    std::vector<Client> clients;
    for (int i = 0; i < kSubscribers; ++i) clients.push_back(stage.subscribe());
    coir::Nursery publishers;
    for (int publisher = 0; publisher < kPublishers; ++publisher) {
      publishers.start([&stage, publisher] {
        for (int i = 0; i < kEach; ++i) {
          char digits[16];
          char* const end = coir::http::write_decimal(digits, static_cast<std::uint64_t>(publisher * kEach + i));
          static_cast<void>(stage.hub->publish(
              {.data = {digits, static_cast<std::size_t>(end - digits)}, .type = {}, .id = {}, .retry_ms = {}}));
          if (i % 16 == 0) coir::yield();
        }
      });
    }
    CHECK(publishers.join().has_value());
    stage.publish("end");
    for (Client& client : clients) {
      client.hear_until("data: end\n\n");
      for (int number = 0; number < kPublishers * kEach; ++number) {
        char line[32];
        snprintf(line, sizeof line, "data: %d\n\n", number);
        const std::size_t at = client.heard.find(line);
        CHECK(at != std::string::npos && client.heard.find(line, at + 1) == std::string::npos);
      }
    }
  });
}

TEST(EventHub, may_be_published_to_from_a_thread) {
  with_hub({}, [](const Stage& stage) {
    Client client = stage.subscribe();
    pthread_t thread;
    const auto publish = [](void* hub) -> void* {
      static_cast<void>(
          static_cast<EventHub*>(hub)->publish({.data = "from a thread", .type = {}, .id = {}, .retry_ms = {}}));
      return nullptr;
    };
    CHECK_EQUAL(0, pthread_create(&thread, nullptr, publish, stage.hub));
    client.hear_until("data: from a thread\n\n");
    CHECK_EQUAL(0, pthread_join(thread, nullptr));
  });
}

#endif

}  // namespace event_hub_test
