// A handler that waits for something else than its client holds no place among the active, and no buffers that it does
// not need.

#include <CppUTest/TestHarness.h>
#include <coir/channel.h>
#include <coir/detail/accounts.h>
#include <coir/events.h>
#include <coir/format.h>
#include <coir/http/client.h>
#include <coir/http/routes.h>
#include <coir/ledger.h>
#include <coir/nursery.h>
#include <coir/pressure.h>
#include <coir/select.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include <optional>

#include "tests/support/far_end.h"
#include "tests/support/scale.h"
#include "tests/unit/http/handler_server.h"

namespace http_places_test {

using namespace std::chrono_literals;
using namespace coir::test;
using coir::Address;
using coir::Case;
using coir::TcpListener;
namespace http = coir::http;

namespace {

constexpr int kMostActive = 2;
constexpr int kWaiting = 9;

// answer ends a handler whose wait has ended as it should.
void answer(Exchange& exchange, bool right) {
  exchange.respond(200, "text/plain", right ? "news\n" : "nothing\n");
  ++seen_by(exchange).answered;
}

bool is_now(Exchange& exchange) {
  if (exchange.request().path != "/now") return false;
  exchange.respond(200, "text/plain", "now\n");
  return true;
}

// holds_request tells whether the handler's views are what the client has sent.
bool holds_request(Exchange& exchange) {
  const auto& request = exchange.request();
  return request.path == "/wait" && request.query == "for=news" && request.header("Name") == "value" &&
         request.method_text == "POST";
}

}  // namespace

TEST_GROUP_BASE(HttpPlaces, HandlerServer) {
  // crowd has more clients than there are places wait in a handler, sees that one more is answered at once, and ends
  // their waits. `most` is how many of all have buffers meanwhile.
  void crowd(void (*handler)(Exchange&), std::string_view request = kGet, int most = kWaiting + kMostActive) {
    serving({.handler = handler, .max_active = kMostActive}, [&](Server& server, const Address& address, Seen& seen) {
      const std::size_t before = coir::account::http.used();
      static std::array<std::optional<Client>, kWaiting> clients;
      for (auto& client : clients) {
        client.emplace(address);
        expect(client->say(request));
      }
      expect(until([&] { return seen.waiting == kWaiting; }, soon()));
      Client other(address);
      expect(other.say("GET /now HTTP/1.1\r\nHost: t\r\n\r\n") && other.hear("now\n"));
      // Unused buffers are freed some time after a peak.
      expect(until([&] { return coir::account::http.used() - before <= most * Server::request_bytes(); }, soon()));
      seen.news.set();
      for (auto& client : clients) expect(client->hear("news\n"));
      expect(until([&] { return seen.answered == kWaiting; }, soon()) && seen.cancelled == 0);
      expect(server.gauges().active <= kMostActive);
      for (auto& client : clients) client.reset();
    });
  }
};

TEST(HttpPlaces, a_handler_that_waits_for_an_event_holds_no_place) {
  crowd(hold);
}

TEST(HttpPlaces, a_handler_that_waits_gives_its_buffers_where_memory_is_short) {
  coir::Account& held = coir::account::http;
  coir::Ledger::total().set_ceiling(64 << 20);
  serving({.handler = hold, .max_active = kWaiting}, [&](Server&, const Address& address, Seen& seen) {
    const std::size_t before = held.used();
    static std::array<std::optional<Client>, kWaiting> clients;
    for (auto& client : clients) expect(client.emplace(address).say(kGet));
    expect(until([&] { return seen.waiting == kWaiting; }, soon()));
    // One is left for those that go on.
    expect(until(
        [&] {
          static_cast<void>(coir::Pressure::make_room(held, 1 << 30));
          return held.used() - before < 2 * Server::request_bytes();
        },
        soon()));
    seen.news.set();
    for (auto& client : clients) expect(client->hear("news\n"));
    expect(until([&] { return seen.answered == kWaiting; }, soon()) && seen.cancelled == 0);
    for (auto& client : clients) client.reset();
  });
  coir::Ledger::total().set_ceiling(SIZE_MAX);
}

TEST(HttpPlaces, memory_that_is_short_takes_no_place_whose_buffers_stay) {
  const auto handler = [](Exchange& exchange) {
    static_cast<void>(exchange.scratch());
    answer(exchange, seen_by(exchange).wait());
  };
  coir::Ledger::total().set_ceiling(64 << 20);
  serving({.handler = handler, .max_active = kWaiting}, [&](Server& server, const Address& address, Seen& seen) {
    static std::array<std::optional<Client>, kWaiting> clients;
    for (auto& client : clients) expect(client.emplace(address).say(kGet));
    expect(until([&] { return seen.waiting == kWaiting; }, soon()));
    static_cast<void>(coir::Pressure::make_room(coir::account::http, 1 << 30));
    expect(server.gauges().active == kWaiting);
    seen.news.set();
    for (auto& client : clients) expect(client->hear("news\n"));
    for (auto& client : clients) client.reset();
  });
  coir::Ledger::total().set_ceiling(SIZE_MAX);
}

TEST(HttpPlaces, behind_routes_a_handler_that_waits_holds_no_buffers) {
  const auto handler = [](Exchange& exchange) {
    static auto app = http::routes(http::get<"/">(hold), http::get<"/now">(hold));
    app(exchange);
  };
  crowd(handler, kGet, kMostActive);
}

// Its memory is a buffer's, which another request's path would overwrite.
TEST(HttpPlaces, a_decoded_path_is_kept_by_a_handler_that_waits) {
  const auto handler = [](Exchange& exchange) {
    static auto app = http::routes(http::get<"/{name}">([](Exchange& of, std::string_view name) {
      const bool waited = seen_by(of).wait();
      answer(of, waited && name.starts_with("name") && name.back() == of.request().path.back());
    }));
    app(exchange);
  };
  serving({.handler = handler, .max_active = kMostActive}, [&](Server&, const Address& address, Seen& seen) {
    static std::array<std::optional<Client>, kWaiting> clients;
    for (std::size_t i = 0; i < clients.size(); ++i) {
      char text[64];
      expect(clients[i].emplace(address).say(coir::format(text, "GET /n%61me", i, " HTTP/1.1\r\nHost: t\r\n\r\n")));
    }
    expect(until([&] { return seen.waiting == kWaiting; }, soon()));
    seen.news.set();
    for (auto& client : clients) {
      expect(client->hear("news\n"));
      client.reset();
    }
  });
}

TEST(HttpPlaces, a_handler_that_sleeps_or_selects_holds_no_place) {
  crowd([](Exchange& exchange) {
    if (is_now(exchange)) return;
    Seen& seen = seen_by(exchange);
    const int turn = ++seen.waiting;
    if (turn % 2 == 0) {
      bool right = true;
      while (right && !seen.news.is_set()) right = coir::sleep(5ms).has_value();
      return answer(exchange, right);
    }
    const auto won = coir::select({Case::opened(seen.news), exchange.client_gone(), Case::after(24h)});
    answer(exchange, won && won->index == 0);
  });
}

// By a shield it lets no client end its wait: as a verdict on a password is held back.
TEST(HttpPlaces, a_handler_that_waits_on_whatever_its_client_does_holds_no_place) {
  const auto handler = [](Exchange& exchange) {
    Seen& seen = seen_by(exchange);
    if (is_now(exchange)) return;
    const bool ended = !coir::sleep(1h);
    const coir::Shield shield(soon());
    ++seen.waiting;
    answer(exchange, ended && seen.news.wait());
  };
  serving({.handler = handler, .max_active = kMostActive}, [&](Server&, const Address& address, Seen& seen) {
    std::array<std::optional<Client>, kMostActive + 2> clients;
    for (auto& client : clients) {
      client.emplace(address);
      expect(client->say(kGet));
      client->end_its_side();
    }
    Client other(address);
    expect(other.say("GET /now HTTP/1.1\r\nHost: t\r\n\r\n") && other.hear("now\n"));
    expect(until([&] { return seen.waiting == static_cast<int>(clients.size()); }, soon()));
    seen.news.set();
    for (auto& client : clients) expect(client->hear("news\n"));
  });
}

TEST(HttpPlaces, a_handler_that_waits_for_its_children_holds_no_place) {
  crowd([](Exchange& exchange) {
    if (is_now(exchange)) return;
    Seen& seen = seen_by(exchange);
    coir::Nursery children;
    bool right = false;
    children.start([&] {
      // Its parent's request, which is in use all the time.
      right = seen.wait() && exchange.request().header("Host") == "t";
    });
    const bool joined = children.join().has_value();
    answer(exchange, joined && right);
  });
}

TEST(HttpPlaces, a_handler_whose_child_has_used_the_exchange_holds_no_place) {
  crowd([](Exchange& exchange) {
    if (is_now(exchange)) return;
    Seen& seen = seen_by(exchange);
    exchange.start(200);
    bool right = exchange.begin_chunked().has_value();
    const auto say = [&](std::string_view text) { return exchange.write(text) && exchange.flush(); };
    coir::Nursery children;
    children.start([&] {
      for (int turn = 0; turn < 8; ++turn) right = coir::sleep(5ms) && say("piece\n") && right;
      right = seen.wait() && say("news\n") && right;
    });
    if (children.join() && right) ++seen.answered;
  });
}

// The client takes nothing of an answer that a child is writing. It is not cut off for another one.
TEST(HttpPlaces, a_handler_that_begins_to_wait_during_a_childs_call_holds_no_place) {
  static char piece[1 << 20];
  const auto handler = [](Exchange& exchange) {
    if (is_now(exchange)) return;
    Seen& seen = seen_by(exchange);
    exchange.start(200);
    bool right = exchange.begin_chunked().has_value();
    coir::Nursery children;
    children.start([&] {
      ++seen.told;
      for (int turn = 0; turn < 8; ++turn) right = exchange.write({piece, sizeof piece}) && right;
    });
    while (seen.told == 0) coir::yield();
    if (children.join() && right) ++seen.answered;
  };
  serving({.handler = handler, .max_active = 1}, [&](Server& server, const Address& address, Seen& seen) {
    Client client(address), other(address);
    expect(client.say("GET / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n"));
    expect(until([&] { return seen.told == 1; }, soon()));
    expect(other.say("GET /now HTTP/1.1\r\nHost: t\r\n\r\n") && other.hear("now\n"));
    expect(client.hear_the_end() && until([&] { return seen.answered == 1; }, soon()));
    expect(until([&] { return server.gauges().active == 0; }, soon()));
    client.reset();
    other.reset();
  });
}

TEST(HttpPlaces, a_handler_that_waits_for_its_client_beside_a_child_holds_no_place) {
  const auto handler = [](Exchange& exchange) {
    if (is_now(exchange)) return;
    coir::Nursery children;
    children.start([] { static_cast<void>(coir::sleep(24h)); });
    ++seen_by(exchange).told;
    char piece[8];
    const auto got = exchange.read_body(piece);
    children.cancel();
    answer(exchange, got && *got == 1);
  };
  serving({.handler = handler, .max_active = 1}, [&](Server&, const Address& address, Seen& seen) {
    Client client(address), other(address);
    expect(client.say("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n"));
    expect(until([&] { return seen.told == 1; }, soon()));
    expect(other.say("GET /now HTTP/1.1\r\nHost: t\r\n\r\n") && other.hear("now\n"));
    expect(client.say("x") && client.hear("news\n"));
    client.reset();
    other.reset();
  });
}

// The session is given back in the handler's wait, which has offered its place.
TEST(HttpPlaces, a_child_may_make_a_stream_of_the_exchange) {
  const auto handler = [](Exchange& exchange) {
    if (exchange.request().path != "/stream") return hold(exchange);
    Seen& seen = seen_by(exchange);
    coir::Nursery children;
    children.start([&] {
      seen.expect(coir::sleep(30ms).has_value());
      auto stream = http::EventStream::open(exchange);
      seen.expect(stream && stream->send({.data = "begun"}));
      seen.expect(seen.wait() && stream->send({.data = "news"}));
    });
    seen.expect(children.join().has_value());
  };
  serving({.handler = handler, .max_active = 1}, [&](Server& server, const Address& address, Seen& seen) {
    Client client(address), second(address), other(address);
    expect(client.say("GET /stream HTTP/1.1\r\nHost: t\r\n\r\n") && client.hear("begun\n"));
    expect(second.say(kGet) && until([&] { return seen.waiting == 2; }, soon()));
    // The second's place is the one that is taken for it.
    expect(other.say("GET /now HTTP/1.1\r\nHost: t\r\n\r\n") && other.hear("now\n"));
    seen.news.set();
    expect(client.hear("news\n") && second.hear("news\n"));
    expect(until([&] { return server.gauges().active == 0; }, soon()));
    for (Client* const each : {&client, &second, &other}) each->reset();
  });
}

TEST(HttpPlaces, a_handler_holds_no_buffers_once_its_children_have_ended) {
  const auto handler = [](Exchange& exchange) {
    if (is_now(exchange)) return;
    Seen& seen = seen_by(exchange);
    coir::Nursery children;
    children.start([&] {
      seen.expect(coir::sleep(30ms).has_value());
      exchange.add_fields("");
    });
    seen.expect(children.join().has_value());
    answer(exchange, seen.wait());
  };
  crowd(handler, kGet, kMostActive);
}

TEST(HttpPlaces, nothing_is_lost_by_a_wait_without_a_place) {
  const auto handler = [](Exchange& exchange) {
    if (is_now(exchange)) return;
    Seen& seen = seen_by(exchange);
    const bool keeps_scratch = exchange.request().header("Scratch") == "yes";
    char* scratch = nullptr;
    if (keeps_scratch) {
      scratch = exchange.scratch().data();
      strcpy(scratch, "mine");
    }
    char piece[8];
    // Some of the content has come with the head, and more comes while the handler waits.
    auto got = exchange.read_body({piece, 2});
    bool right = got && *got == 2 && memcmp(piece, "ab", 2) == 0;
    exchange.add_fields("X-Added: kept\r\n");
    right = seen.wait() && right && holds_request(exchange);
    for (std::size_t have = 2; right && have < 6; have += *got) {
      got = exchange.read_body(piece);
      right = got && memcmp(piece, &"abcdef"[have], *got) == 0;
    }
    right = right && (!keeps_scratch || strcmp(scratch, "mine") == 0);
    exchange.start(200);
    right = exchange.begin_chunked() && right;
    // Unsent while it waits again.
    right = exchange.write(right ? "first " : "wrong ") && coir::sleep(1ms) && right;
    if (exchange.write("second\n")) ++seen.answered;
  };
  constexpr std::string_view kBegin = "POST /wait?for=news HTTP/1.1\r\nHost: localhost\r\nName: value\r\n";
  static char long_field[3000];
  memset(long_field, 'x', sizeof long_field - 1);
  serving({.handler = handler, .max_active = kMostActive}, [&](Server&, const Address& address, Seen& seen) {
    static std::array<std::optional<Client>, kWaiting> clients;
    for (std::size_t i = 0; i < clients.size(); ++i) {
      Client& client = clients[i].emplace(address);
      expect(client.say(kBegin));
      if (i % 3 == 1) expect(client.say("Scratch: yes\r\n"));
      if (i % 3 == 2) expect(client.say("Long: ") && client.say(long_field) && client.say("\r\n"));
      expect(
          client.say(i % 2 == 0 ? "Content-Length: 6\r\n\r\nabc" : "Transfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n"));
    }
    expect(until([&] { return seen.waiting == kWaiting; }, soon()));
    Client other(address);
    expect(other.say("GET /now HTTP/1.1\r\nHost: t\r\n\r\n") && other.hear("now\n"));
    // The rest of the content, and a request behind it.
    for (std::size_t i = 0; i < clients.size(); ++i) {
      expect(clients[i]->say(i % 2 == 0 ? "def" : "2\r\nef\r\n0\r\n\r\n"));
      expect(clients[i]->say("GET /now HTTP/1.1\r\nHost: t\r\n\r\n"));
    }
    seen.news.set();
    for (auto& client : clients) {
      expect(client->hear("X-Added: kept\r\n") && client->hear("first ") && client->hear("second\n") &&
             client->hear("now\n"));
    }
    expect(seen.cancelled == 0);
    for (auto& client : clients) client.reset();
  });
}

// Each of its waits is short, and all together are long. No client is cut off for it.
TEST(HttpPlaces, a_client_that_sends_a_byte_again_and_again_keeps_no_place) {
  constexpr std::size_t kContent = 4000;
  const auto handler = [](Exchange& exchange) {
    if (is_now(exchange)) return;
    std::size_t have = 0;
    char piece[64];
    for (std::expected<std::size_t, coir::Error> got; (got = exchange.read_body(piece)).has_value();) have += *got;
    exchange.respond(200, "text/plain", have == kContent ? "whole\n" : "part\n");
  };
  serving({.handler = handler, .max_active = kMostActive}, [&](Server&, const Address& address, Seen&) {
    static std::array<std::optional<Client>, kWaiting> clients;
    for (auto& client : clients) {
      client.emplace(address);
      expect(client->say("POST /wait HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000\r\n\r\n"));
    }
    Client other(address);
    expect(other.say("GET /now HTTP/1.1\r\nHost: t\r\n\r\n"));
    std::size_t sent = 0;
    char heard[512];
    for (bool answered = false; !answered && sent < kContent - 1; ++sent) {
      for (auto& client : clients) expect(client->say("x"));
      answered = other.stream.read(heard, coir::Deadline::after(2ms)).has_value();
      if (sent == kContent - 2) expect(answered);
    }
    static const char rest[kContent] = {};
    for (auto& client : clients) expect(client->say({rest, kContent - sent}) && client->hear("whole\n"));
    for (auto& client : clients) client.reset();
  });
}

// Some of their bytes are there all the time. No client is cut off for it.
TEST(HttpPlaces, heads_that_come_byte_by_byte_hold_no_place) {
  serving({.handler = hold, .max_active = kMostActive}, [&](Server& server, const Address& address, Seen&) {
    static std::array<std::optional<Client>, kWaiting> clients;
    for (auto& client : clients) {
      client.emplace(address);
      expect(client->say("GET /now HTTP/1.1\r\nHost: t\r\nX-Slow: "));
    }
    expect(until([&] { return server.gauges().idle == kWaiting && server.gauges().active == 0; }, soon()));
    Client other(address);
    expect(other.say("GET /now HTTP/1.1\r\nHost: t\r\n\r\n"));
    char heard[512];
    bool answered = false;
    for (int sent = 0; !answered && sent < 4000; ++sent) {
      for (auto& client : clients) expect(client->say("x"));
      answered = other.stream.read(heard, coir::Deadline::after(2ms)).has_value();
    }
    expect(answered);
    // Behind one there is another request.
    for (auto& client : clients) expect(client->say("\r\n\r\nGET /now HTTP/1.1\r\nHo") && client->hear("now\n"));
    expect(until([&] { return server.gauges().active == 0; }, soon()));
    for (auto& client : clients) {
      client->have = 0;
      expect(client->say("st: t\r\n\r\n") && client->hear("now\n"));
      client.reset();
    }
  });
}

TEST(HttpPlaces, half_a_head_makes_room_for_another_client_and_is_answered) {
  constexpr int kMost = 4;
  const ServerOptions options{.handler = hold, .max_connections = kMost, .evict_after = 0ms};
  serving(options, [&](Server& server, const Address& address, Seen&) {
    static std::array<std::optional<Client>, kMost> clients;
    std::size_t resting = 0;
    for (auto& client : clients) {
      client.emplace(address);
      expect(client->say("GET /now HTTP/1.1\r\nHost: "));
      ++resting;
      // The server has read it, and it rests: in this order they are closed.
      const auto rests = [&] {
        int unread = 1;
        return ::ioctl(far_end(client->stream.fd()), FIONREAD, &unread) == 0 && unread == 0 &&
               server.gauges().idle == resting && server.gauges().active == 0;
      };
      expect(until(rests, soon()));
    }
    Client other(address);
    expect(other.say("GET /now HTTP/1.1\r\nHost: t\r\n\r\n") && other.hear("now\n"));
    expect(server.gauges().open == kMost);
    expect(clients[0]->hear("HTTP/1.1 503 ") && clients[0]->hear_the_end());
    for (auto& client : clients) client.reset();
  });
}

// A session that is begun by a handler's wait is neither counted, joined nor cancelled with the handler's children.
TEST(HttpPlaces, a_session_that_takes_a_handlers_place_is_no_child_of_it) {
  const auto handler = [](Exchange& exchange) {
    if (exchange.request().path != "/first") return hold(exchange);
    Seen& seen = seen_by(exchange);
    coir::Nursery children({.limit = 1});
    children.start([] { static_cast<void>(coir::sleep(24h)); });
    // Together its waits are long: the next one gives its place away at once.
    for (int turn = 0; turn < 8; ++turn) {
      seen.expect(coir::sleep(5ms).has_value());
      static_cast<void>(exchange.scratch());
    }
    ++seen.told;
    seen.compute();
    static_cast<void>(coir::sleep(24h));
    static_cast<void>(children.join());
    ++seen.told;
  };
  serving({.handler = handler, .max_active = 1}, [&](Server& server, const Address& address, Seen& seen) {
    Client first(address), other(address);
    expect(first.say("GET /first HTTP/1.1\r\nHost: t\r\n\r\n"));
    expect(until([&] { return seen.told == 1; }, soon()));
    expect(other.say("GET /now HTTP/1.1\r\nHost: t\r\n\r\n"));
    expect(until([&] { return server.gauges().waiting == 1; }, soon()));
    seen.go = true;
    expect(other.hear("now\n"));
    expect(other.say(kGet) && until([&] { return seen.waiting == 1; }, soon()));
    first.reset();
    expect(until([&] { return seen.told == 2; }, soon()));
    seen.news.set();
    expect(other.hear("news\n") && seen.cancelled == 0);
    other.reset();
  });
}

// A handler that is cancelled while it waits without a place answers all the same.
TEST(HttpPlaces, a_stop_ends_waits_without_a_place) {
  serving({.handler = hold, .max_active = kMostActive}, [&](Server& server, const Address& address, Seen& seen) {
    static std::array<std::optional<Client>, kWaiting> clients;
    for (auto& client : clients) {
      client.emplace(address);
      expect(client->say(kGet));
    }
    expect(until([&] { return seen.waiting == kWaiting; }, soon()));
    coir::Fiber stop = coir::spawn([&] { expect(server.stop(soon()).has_value()); });
    for (auto& client : clients) expect(client->hear("nothing\n") && client->hear_the_end());
    expect(seen.cancelled == kWaiting);
    for (auto& client : clients) client.reset();
    expect(stop.join().has_value());
  });
}

TEST(HttpPlaces, a_handler_that_waits_costs_its_fibers_page_and_its_connections_record) {
  if (kEmulated || kAddressSanitized || kThreadSanitized) return;
  const auto resident = [] {
    long pages = 0;
    FILE* const file = fopen("/proc/self/statm", "r");
    if (fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
    fclose(file);
    return pages * 4096;
  };
  constexpr int kHandlers = 400, kBefore = 50;
  static std::array<std::optional<Client>, kHandlers> clients;
  long bytes = 0;
  ServerOptions options{.handler = hold, .max_active = 8};
  const auto ran = coir::run_until_idle({.workers = 1, .default_stack = 65536}, [&] {
    Seen seen;
    seen.test = this;
    seen_now = &seen;
    auto server = Server::create(options);
    auto listener = TcpListener::listen(*Address::parse("127.0.0.1:0"));
    const Address address = listener->local_address();
    expect(server && server->add(std::move(*listener)) && server->start());
    // The memory of the clients themselves, and the connections' records, are there before.
    for (auto& client : clients) client.emplace(address);
    expect(until([&] { return server->gauges().idle == kHandlers; }, soon()));
    long before = 0;
    for (int i = 0; i < kHandlers; ++i) {
      if (i == kBefore) before = resident();
      expect(clients[i]->say(kGet));
      if (i == kBefore - 1 || i == kHandlers - 1) expect(until([&] { return seen.waiting == i + 1; }, soon()));
    }
    bytes = (resident() - before) / (kHandlers - kBefore);
    for (auto& client : clients) client.reset();
    expect(server->stop(soon()).has_value());
  });
  check();
  CHECK_TRUE(ran.has_value());
  printf("\nwaiting_handler_bytes: %ld bytes\n", bytes);
  // With the record it is 4,700.
  CHECK_TRUE(bytes <= 4600);
}

}  // namespace http_places_test
