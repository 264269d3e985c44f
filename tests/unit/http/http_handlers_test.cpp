// What ends a handler that waits for something else than its client, and what does not: the client's reset, the end of
// its side, the server's stop. Clients are fibers of the same run.

#include <CppUTest/TestHarness.h>
#include <coir/cancel_scope.h>
#include <coir/config.h>
#include <coir/event.h>
#include <coir/fiber.h>
#include <coir/http/server.h>
#include <coir/nursery.h>
#include <coir/runtime.h>
#include <coir/select.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <optional>
#include <source_location>
#include <span>
#include <string_view>

#include "net/src/socket/kernel.h"
#include "tests/support/everywhere.h"
#include "tests/support/scale.h"
#include "tests/support/until.h"

#if COIR_TLS
#include "tests/support/tls_pair.h"
#endif

using namespace std::chrono_literals;
using coir::Address;
using coir::Case;
using coir::Deadline;
using coir::Error;
using coir::ErrorCode;
using coir::Event;
using coir::TcpListener;
using coir::TcpStream;
using coir::http::Exchange;
using coir::http::Server;
using coir::http::ServerOptions;
using coir::test::until;

namespace {

Deadline soon() {
  return Deadline::after(100s);
}

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: t\r\n\r\n";

// Seen is what the handlers of a test tell it.
struct Seen {
  coir::test::Expectations* test = nullptr;
  Event news;                     // what handlers wait for
  std::atomic<int> waiting{0};    // handlers that are about to wait
  std::atomic<int> cancelled{0};  // handlers and children whose wait was cancelled
  std::atomic<int> told{0};       // by a case
  std::atomic<int> answered{0};
  std::atomic<const char*> reason{nullptr};
  std::atomic<bool> go{false};

  void expect(bool right, const std::source_location& where = std::source_location::current()) {
    test->expect(right, where);
  }
  // wait is what most handlers do, up to a day.
  bool wait() {
    ++waiting;
    const auto waited = news.wait(Deadline::after(24h));
    if (waited) return true;
    expect(waited.error() == ErrorCode::cancelled);
    reason = coir::cancel_reason();
    ++cancelled;
    return false;
  }
  // compute goes on until the test says so, and waits for nothing meanwhile.
  void compute() {
    while (!go) coir::yield_to_events();
  }
  bool was_reason(std::string_view text) const {
    const char* const given = reason;
    return given != nullptr && text == given;
  }
};

Seen& seen_by(Exchange& exchange) {
  return exchange.context<Seen>();
}

// hold is a long poll; /now answers at once.
void hold(Exchange& exchange) {
  Seen& seen = seen_by(exchange);
  if (exchange.request().path == "/now") return exchange.respond(200, "text/plain", "now\n");
  exchange.respond(200, "text/plain", seen.wait() ? "news\n" : "nothing\n");
  ++seen.answered;
}

// Client is a client that keeps what it hears.
struct Client {
  TcpStream stream;
  std::array<char, 1024> memory{};
  std::size_t have = 0;

  explicit Client(const Address& to) {
    if (auto connected = TcpStream::connect(to, soon())) stream = std::move(*connected);
  }
  bool say(std::string_view text) { return stream.write(text, soon()).has_value(); }
  bool hear(std::string_view text) {
    while (std::string_view(memory.data(), have).find(text) == std::string_view::npos) {
      auto got = stream.read(std::span(memory).subspan(have), soon());
      if (!got) return false;
      have += *got;
    }
    return true;
  }
  bool hear_the_end() {
    char rest[512];
    for (;;) {
      auto got = stream.read(rest, soon());
      if (!got) return got.error() == ErrorCode::end_of_stream;
    }
  }
  void end_its_side() { stream.shutdown_write(); }
  void reset() {
    const linger now{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(stream.fd(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
    stream.close();
  }
};

char large[8 << 20];

// answer_large answers once the test says so.
void answer_large(Exchange& exchange) {
  ++seen_by(exchange).waiting;
  seen_by(exchange).compute();
  exchange.respond(200, "text/plain", {large, sizeof large});
  ++seen_by(exchange).answered;
}

// answer_large_after_a_wait has waited by then for something that came.
void answer_large_after_a_wait(Exchange& exchange) {
  Event event;
  coir::Fiber fiber = coir::spawn([&] { event.set(); });
  seen_by(exchange).expect(event.wait(soon()).has_value() && fiber.join().has_value());
  answer_large(exchange);
}

// hear_large returns how much of an answer the client gets.
std::size_t hear_large(Client& client) {
  static char piece[65536];
  std::size_t heard = 0;
  while (auto got = client.stream.read(piece, soon())) heard += *got;
  return heard;
}

}  // namespace

TEST_GROUP_BASE(HttpHandlers, coir::test::Everywhere){
    // serving runs `visit` beside a server with these options, in every kind of run.
    template <class Visit> void serving(ServerOptions options, Visit visit){everywhere([&] {
      Seen seen;
      seen.test = this;
      options.context = &seen;
      auto server = Server::create(options);
      auto listener = TcpListener::listen(*Address::parse("127.0.0.1:0"));
      const Address address = listener->local_address();
      expect(server && server->add(std::move(*listener)) && server->start());
      visit(*server, address, seen);
      expect(server->stop(soon()).has_value());
      expect(server->gauges().open == 0);
    });
}
}
;

TEST(HttpHandlers, a_reset_ends_a_wait) {
  serving({.handler = hold}, [&](Server&, const Address& address, Seen& seen) {
    Client client(address);
    expect(client.say(kGet) && until([&] { return seen.waiting == 1; }, soon()));
    client.reset();
    expect(until([&] { return seen.cancelled == 1; }, soon()));
    expect(seen.was_reason("the client is gone"));
  });
}

TEST(HttpHandlers, the_end_of_the_clients_side_ends_a_wait_and_the_answer_still_arrives) {
  serving({.handler = hold}, [&](Server&, const Address& address, Seen& seen) {
    Client client(address);
    expect(client.say(kGet) && until([&] { return seen.waiting == 1; }, soon()));
    client.end_its_side();
    expect(client.hear("nothing\n") && client.hear_the_end());
    expect(seen.cancelled == 1 && seen.was_reason("the client has ended its side"));
  });
}

TEST(HttpHandlers, an_end_that_came_with_the_request_ends_a_wait_that_begins_later) {
  const auto handler = [](Exchange& exchange) {
    seen_by(exchange).compute();
    hold(exchange);
  };
  serving({.handler = handler}, [&](Server&, const Address& address, Seen& seen) {
    Client client(address);
    expect(client.say(kGet));
    client.end_its_side();
    seen.go = true;
    expect(client.hear("nothing\n") && client.hear_the_end());
    expect(seen.cancelled == 1);
  });
}

TEST(HttpHandlers, the_stop_of_the_server_ends_a_wait) {
  serving({.handler = hold}, [&](Server& server, const Address& address, Seen& seen) {
    Client client(address);
    expect(client.say(kGet) && until([&] { return seen.waiting == 1; }, soon()));
    server.begin_stop();
    expect(client.hear("nothing\n") && client.hear_the_end());
    expect(seen.cancelled == 1 && seen.was_reason("the server stops"));
  });
}

TEST(HttpHandlers, the_stop_of_the_server_ends_a_wait_that_begins_later) {
  const auto handler = [](Exchange& exchange) {
    ++seen_by(exchange).told;
    seen_by(exchange).compute();
    hold(exchange);
  };
  serving({.handler = handler}, [&](Server& server, const Address& address, Seen& seen) {
    Client client(address);
    expect(client.say(kGet) && until([&] { return seen.told == 1; }, soon()));
    server.begin_stop();
    seen.go = true;
    expect(client.hear("nothing\n") && client.hear_the_end());
    expect(seen.cancelled == 1);
  });
}

TEST(HttpHandlers, sixty_four_long_polls_that_hung_up_leave_room_for_one_more) {
  constexpr int kPolls = 64;
  ServerOptions options{.handler = hold, .max_active = kPolls};
  serving(options, [&](Server& server, const Address& address, Seen& seen) {
    {
      static std::array<std::optional<Client>, kPolls> polls;
      for (auto& poll : polls) expect(poll.emplace(address).say(kGet));
      expect(until([&] { return seen.waiting == kPolls; }, soon()));
      // Every other one in good order.
      for (std::size_t i = 0; i < polls.size(); i += 2) polls[i]->reset();
      for (auto& poll : polls) poll.reset();
    }
    Client one_more(address);
    expect(one_more.say("GET /now HTTP/1.1\r\nHost: t\r\n\r\n") && one_more.hear("now\n"));
    expect(until([&] { return seen.cancelled == kPolls; }, soon()));
    expect(server.counters().refused.load() == 0);
  });
}

TEST(HttpHandlers, waits_that_nobody_ends_go_on) {
  serving({.handler = hold}, [&](Server&, const Address& address, Seen& seen) {
    Client client(address);
    expect(client.say(kGet) && until([&] { return seen.waiting == 1; }, soon()));
    seen.news.set();
    expect(client.hear("news\n") && seen.cancelled == 0);
  });
}

TEST(HttpHandlers, the_next_request_is_no_hang_up_and_is_answered) {
  serving({.handler = hold}, [&](Server&, const Address& address, Seen& seen) {
    Client client(address);
    expect(client.say(kGet) && until([&] { return seen.waiting == 1; }, soon()));
    expect(client.say("GET /now HTTP/1.1\r\nHost: t\r\n\r\n"));
    coir::test::until_polled();
    seen.news.set();
    expect(client.hear("news\n") && client.hear("now\n") && seen.cancelled == 0);
    // And so is one that comes after all this.
    client.have = 0;
    expect(client.say(kGet) && client.hear("news\n"));
  });
}

TEST(HttpHandlers, what_was_sent_before_the_end_of_the_clients_side_is_answered) {
  serving({.handler = hold}, [&](Server&, const Address& address, Seen& seen) {
    Client client(address);
    expect(client.say("GET / HTTP/1.1\r\nHost: t\r\n\r\nGET /now HTTP/1.1\r\nHost: t\r\n\r\n"));
    expect(until([&] { return seen.waiting == 1; }, soon()));
    client.end_its_side();
    expect(client.hear("nothing\n") && client.hear("now\n") && client.hear_the_end());
  });
}

// On a kernel without epoll this is not noticed.
TEST(HttpHandlers, a_hang_up_behind_a_request_that_nobody_has_read_ends_a_wait) {
  for (const unsigned workers : {1u, 2u}) {
    const auto ran = coir::run_until_idle({.workers = workers}, [&] {
      if (std::string_view(coir::stats().poller) != "epoll") return;
      Seen seen;
      seen.test = this;
      auto server = Server::create({.handler = hold, .context = &seen});
      auto listener = TcpListener::listen(*Address::parse("127.0.0.1:0"));
      const Address address = listener->local_address();
      expect(server && server->add(std::move(*listener)) && server->start());
      Client client(address);
      expect(client.say(kGet) && until([&] { return seen.waiting == 1; }, soon()));
      expect(client.say("GET /now HTTP/1.1\r\nHost: t\r\n\r\n"));
      coir::test::until_polled();
      client.end_its_side();
      expect(client.hear("nothing\n") && client.hear("now\n") && client.hear_the_end());
      expect(server->stop(soon()).has_value());
    });
    check();
    CHECK_TRUE(ran.has_value());
  }
}

TEST(HttpHandlers, a_client_that_has_ended_its_side_gets_an_answer_larger_than_the_sockets_buffers) {
  for (coir::http::Handler* const handler : {answer_large, answer_large_after_a_wait}) {
    serving({.handler = handler}, [&](Server&, const Address& address, Seen& seen) {
      Client client(address);
      expect(client.say(kGet) && until([&] { return seen.waiting == 1; }, soon()));
      client.end_its_side();
      coir::test::until_polled();
      seen.go = true;
      expect(hear_large(client) > sizeof large);
    });
  }
}

TEST(HttpHandlers, the_stop_of_the_server_does_not_cut_an_answer_short) {
  for (coir::http::Handler* const handler : {answer_large, answer_large_after_a_wait}) {
    serving({.handler = handler}, [&](Server& server, const Address& address, Seen& seen) {
      Client client(address);
      expect(client.say(kGet) && until([&] { return seen.waiting == 1; }, soon()));
      server.begin_stop();
      seen.go = true;
      expect(hear_large(client) > sizeof large);
    });
  }
}

TEST(HttpHandlers, the_stop_of_the_server_does_not_cut_short_an_answer_that_a_slow_client_takes) {
  static coir::FiberRef serves;
  const auto handler = [](Exchange& exchange) {
    serves = coir::current();
    answer_large_after_a_wait(exchange);
  };
  serving({.handler = handler}, [&](Server& server, const Address& address, Seen& seen) {
    Client client(address);
    expect(client.say(kGet) && until([&] { return seen.waiting == 1; }, soon()));
    seen.go = true;
    // The answer is larger than what the kernel takes.
    expect(until([&] { return coir::kernel::has_input(client.stream.fd()); }, soon()));
    coir::test::until_parked(serves);
    server.begin_stop();
    expect(hear_large(client) > sizeof large);
  });
}

TEST(HttpHandlers, a_reset_while_the_answer_is_written_ends_what_the_handler_does_next) {
  const auto handler = [](Exchange& exchange) {
    answer_large(exchange);
    seen_by(exchange).wait();
  };
  serving({.handler = handler}, [&](Server&, const Address& address, Seen& seen) {
    Client client(address);
    seen.go = true;
    expect(client.say(kGet) && client.hear("HTTP/1.1 200"));
    client.reset();
    expect(until([&] { return seen.cancelled == 1; }, soon()));
  });
}

TEST(HttpHandlers, a_hang_up_ends_the_waits_of_children_too) {
  const auto handler = [](Exchange& exchange) {
    Seen& seen = seen_by(exchange);
    coir::Nursery nursery;
    for (int i = 0; i < 3; ++i) nursery.start([&] { seen.wait(); });
    const auto joined = nursery.join();
    seen.expect(!joined && joined.error() == ErrorCode::cancelled);
  };
  for (const bool in_good_order : {false, true}) {
    serving({.handler = handler}, [&](Server&, const Address& address, Seen& seen) {
      Client client(address);
      expect(client.say(kGet) && until([&] { return seen.waiting == 3; }, soon()));
      in_good_order ? client.end_its_side() : client.reset();
      expect(until([&] { return seen.cancelled == 3; }, soon()));
    });
  }
}

TEST(HttpHandlers, a_reset_while_the_answer_is_written_ends_the_waits_of_children) {
  const auto handler = [](Exchange& exchange) {
    Seen& seen = seen_by(exchange);
    coir::Nursery nursery;
    nursery.start([&] { seen.wait(); });
    answer_large(exchange);
    while (seen.cancelled == 0) coir::yield_to_events();
    ++seen.told;
  };
  serving({.handler = handler}, [&](Server&, const Address& address, Seen& seen) {
    Client client(address);
    expect(client.say(kGet) && until([&] { return seen.waiting == 2; }, soon()));
    seen.go = true;
    expect(client.hear("HTTP/1.1 200"));
    client.reset();
    expect(until([&] { return seen.told == 1; }, soon()));
  });
}

TEST(HttpHandlers, a_wait_inside_a_scope_of_the_handlers_own_is_ended_by_the_first_of_both) {
  const auto handler = [](Exchange& exchange) {
    Seen& seen = seen_by(exchange);
    {
      coir::CancelScope scope(Deadline::after(1ms));
      const auto late = seen.news.wait();
      seen.expect(!late && late.error() == ErrorCode::timed_out && scope.caused(late.error()));
    }
    coir::CancelScope scope(Deadline::after(24h));
    ++seen.waiting;
    const auto waited = seen.news.wait();
    seen.expect(!waited && waited.error() == ErrorCode::cancelled && !scope.caused(waited.error()));
    ++seen.cancelled;
  };
  serving({.handler = handler}, [&](Server&, const Address& address, Seen& seen) {
    Client client(address);
    expect(client.say(kGet) && until([&] { return seen.waiting == 1; }, soon()));
    client.reset();
    expect(until([&] { return seen.cancelled == 1; }, soon()));
  });
}

TEST(HttpHandlers, a_shield_keeps_a_hang_up_away) {
  const auto handler = [](Exchange& exchange) {
    Seen& seen = seen_by(exchange);
    {
      coir::Shield shield(soon());
      ++seen.waiting;
      seen.expect(seen.news.wait().has_value());
    }
    Event never;
    const auto waited = never.wait(Deadline::after(24h));
    seen.expect(!waited && waited.error() == ErrorCode::cancelled);
    ++seen.answered;
  };
  serving({.handler = handler}, [&](Server&, const Address& address, Seen& seen) {
    Client client(address);
    expect(client.say(kGet) && until([&] { return seen.waiting == 1; }, soon()));
    client.end_its_side();
    coir::test::until_polled();
    seen.news.set();
    expect(until([&] { return seen.answered == 1; }, soon()));
  });
}

TEST(HttpHandlers, what_ended_one_handler_does_not_reach_the_next_of_its_fiber) {
  serving({.handler = hold, .max_active = 1}, [&](Server& server, const Address& address, Seen& seen) {
    for (int round = 1; round <= 3; ++round) {
      seen.news.reset();
      Client gone(address), next(address);
      expect(gone.say(kGet) && until([&] { return seen.waiting == 2 * round - 1; }, soon()));
      // It waits in the queue by then, so that the same fiber serves it.
      expect(next.say(kGet) && until([&] { return server.gauges().waiting == 1; }, soon()));
      gone.reset();
      expect(until([&] { return seen.waiting == 2 * round; }, soon()));
      seen.news.set();
      expect(next.hear("news\n") && seen.cancelled == round);
    }
  });
}

TEST(HttpHandlers, content_is_read_after_a_wait) {
  const auto handler = [](Exchange& exchange) {
    Seen& seen = seen_by(exchange);
    for (int i = 0; i < 3; ++i) {
      Event event;
      coir::Fiber fiber = coir::spawn([&] { event.set(); });
      seen.expect(event.wait(soon()).has_value() && fiber.join().has_value());
      ++seen.waiting;
      char piece[16];
      const auto got = exchange.read_body(piece);
      seen.expect(got && std::string_view(piece, *got) == "piece");
    }
    exchange.respond(200, "text/plain", "all\n");
  };
  serving({.handler = handler}, [&](Server&, const Address& address, Seen& seen) {
    Client client(address);
    expect(client.say("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 15\r\n\r\n"));
    for (int i = 1; i <= 3; ++i) {
      expect(until([&] { return seen.waiting == i; }, soon()) && client.say("piece"));
    }
    expect(client.hear("all\n"));
  });
}

TEST(HttpHandlers, content_that_arrives_while_the_handler_waits_is_kept_and_read_to_its_end) {
  const auto handler = [](Exchange& exchange) {
    Seen& seen = seen_by(exchange);
    seen.wait();
    char piece[64];
    std::size_t all = 0;
    while (auto got = exchange.read_body(piece)) all += *got;
    seen.expect(all == 15);
    exchange.respond(200, "text/plain", "all\n");
  };
  serving({.handler = handler}, [&](Server&, const Address& address, Seen& seen) {
    Client client(address);
    expect(client.say("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 15\r\n\r\n"));
    expect(until([&] { return seen.waiting == 1; }, soon()) && client.say("piece"));
    coir::test::until_polled();
    seen.news.set();
    expect(client.say("piecepiece") && client.hear("all\n") && seen.cancelled == 0);
  });
}

TEST(HttpHandlers, a_case_tells_that_the_client_is_gone) {
  const auto handler = [](Exchange& exchange) {
    Seen& seen = seen_by(exchange);
    ++seen.waiting;
    const auto won = coir::select({Case::opened(seen.news), exchange.client_gone(), Case::after(24h)});
    seen.expect(won && won->index == 1);
    ++seen.told;
    // It stays so, and the next wait is cancelled.
    seen.expect(coir::select({exchange.client_gone(), Case::otherwise()})->index == 0);
    seen.wait();
  };
  for (const bool in_good_order : {false, true}) {
    serving({.handler = handler}, [&](Server&, const Address& address, Seen& seen) {
      Client client(address);
      expect(client.say(kGet) && until([&] { return seen.waiting == 1; }, soon()));
      in_good_order ? client.end_its_side() : client.reset();
      expect(until([&] { return seen.cancelled == 1; }, soon()) && seen.told == 1);
    });
  }
}

TEST(HttpHandlers, a_case_tells_a_handler_that_never_waits_that_the_client_is_gone) {
  const auto handler = [](Exchange& exchange) {
    Seen& seen = seen_by(exchange);
    ++seen.waiting;
    while (coir::select({exchange.client_gone(), Case::otherwise()})->index != 0) coir::yield_to_events();
    ++seen.told;
  };
  serving({.handler = handler}, [&](Server&, const Address& address, Seen& seen) {
    Client client(address);
    expect(client.say(kGet) && until([&] { return seen.waiting == 1; }, soon()) && seen.told == 0);
    client.reset();
    expect(until([&] { return seen.told == 1; }, soon()));
  });
}

TEST(HttpHandlers, the_case_for_a_gone_client_is_not_ready_for_the_next) {
  const auto handler = [](Exchange& exchange) {
    Seen& seen = seen_by(exchange);
    ++seen.waiting;
    if (exchange.request().path == "/now") {
      seen.expect(coir::select({exchange.client_gone(), Case::otherwise()})->index == 1);
      return exchange.respond(200, "text/plain", "now\n");
    }
    seen.expect(coir::select({exchange.client_gone()})->index == 0);
    ++seen.told;
  };
  serving({.handler = handler, .max_active = 1}, [&](Server&, const Address& address, Seen& seen) {
    Client client(address);
    expect(client.say(kGet) && until([&] { return seen.waiting == 1; }, soon()));
    Client next(address);
    expect(next.say("GET /now HTTP/1.1\r\nHost: t\r\n\r\n"));
    client.reset();
    expect(next.hear("now\n") && seen.told == 1);
  });
}

TEST(HttpHandlers, a_case_tells_that_the_server_stops) {
  const auto handler = [](Exchange& exchange) {
    Seen& seen = seen_by(exchange);
    ++seen.waiting;
    const auto won = coir::select({Case::opened(seen.news), exchange.stopping(), Case::after(24h)});
    seen.expect(won && won->index == 1);
    ++seen.told;
    exchange.respond(200, "text/plain", "bye\n");
  };
  serving({.handler = handler}, [&](Server& server, const Address& address, Seen& seen) {
    Client client(address);
    expect(client.say(kGet) && until([&] { return seen.waiting == 1; }, soon()));
    server.begin_stop();
    expect(client.hear("bye\n") && client.hear_the_end() && seen.told == 1);
  });
}

TEST(HttpHandlers, the_address_of_the_client_is_known) {
  const auto handler = [](Exchange& exchange) {
    const auto peer = exchange.peer_address();
    char text[Address::kMaxText];
    if (!peer || exchange.certificate() != nullptr) return;
    exchange.respond(200, "text/plain", peer->format(text));
  };
  serving({.handler = handler}, [&](Server&, const Address& address, Seen&) {
    Client client(address);
    char text[Address::kMaxText];
    const auto own = client.stream.local_address();
    expect(own && client.say(kGet) && client.hear("\r\n\r\n") && client.hear(own->format(text)));
  });
}

TEST(HttpHandlers, a_handler_without_buffers_still_has_its_request_and_the_next_one_is_kept) {
  const auto handler = [](Exchange& exchange) {
    Seen& seen = seen_by(exchange);
    if (exchange.request().path == "/now") return exchange.respond(200, "text/plain", "now\n");
    exchange.scratch()[0] = 'x';
    exchange.release_buffer();
    seen.expect(exchange.scratch()[0] == '\0');
    const bool waited = seen.wait();
    seen.expect(exchange.request().path == "/poll" && exchange.request().header("Name") == "value");
    char piece[16];
    const auto got = exchange.read_body(piece);
    seen.expect(got && std::string_view(piece, *got) == "piece");
    exchange.respond(200, "text/plain", waited ? "news\n" : "nothing\n");
  };
  serving({.handler = handler}, [&](Server&, const Address& address, Seen& seen) {
    // Behind the poll lie several pages of requests that nobody has read.
    static char next[6000];
    memset(next, 'x', sizeof next);
    const std::string_view begin = "piecePOST /now HTTP/1.1\r\nHost: t\r\nA: ", end = "\r\n\r\n";
    memcpy(next, begin.data(), begin.size());
    memcpy(next + sizeof next - end.size(), end.data(), end.size());
    for (const std::size_t sent_before : {std::size_t{5}, sizeof next}) {
      Client client(address);
      const int before = seen.waiting;
      seen.news.reset();
      static char request[sizeof next + 100];
      constexpr std::string_view kPoll = "POST /poll HTTP/1.1\r\nHost: t\r\nName: value\r\nContent-Length: 5\r\n\r\n";
      memcpy(request, kPoll.data(), kPoll.size());
      memcpy(request + kPoll.size(), next, sent_before);
      expect(client.say({request, kPoll.size() + sent_before}));
      expect(until([&] { return seen.waiting == before + 1; }, soon()));
      seen.news.set();
      expect(client.say({next + sent_before, sizeof next - sent_before}));
      expect(client.hear("news\n") && client.hear("now\n") && seen.cancelled == 0);
    }
  });
}

TEST(HttpHandlers, a_long_poll_that_has_released_its_buffer_holds_its_fiber_and_a_page) {
  if (coir::test::kEmulated || coir::test::kAddressSanitized || coir::test::kThreadSanitized) return;
  const auto resident = [] {
    long pages = 0;
    FILE* const file = fopen("/proc/self/statm", "r");
    if (fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
    fclose(file);
    return pages * 4096;
  };
  const auto handler = [](Exchange& exchange) {
    // As one that has been busy before.
    memset(exchange.scratch().data(), 'x', exchange.scratch().size());
    exchange.release_buffer();
    hold(exchange);
  };
  constexpr int kPolls = 200;
  static std::array<std::optional<Client>, kPolls> polls;
  long bytes = 0;
  ServerOptions options{.handler = handler, .max_active = kPolls};
  const auto ran = coir::run_until_idle({.workers = 1, .default_stack = 65536}, [&] {
    Seen seen;
    seen.test = this;
    options.context = &seen;
    auto server = Server::create(options);
    auto listener = TcpListener::listen(*Address::parse("127.0.0.1:0"));
    const Address address = listener->local_address();
    expect(server && server->add(std::move(*listener)) && server->start());
    for (auto& poll : polls) poll.emplace(address);
    expect(until([&] { return server->gauges().idle == kPolls; }, soon()));
    const long before = resident();
    for (auto& poll : polls) expect(poll->say(kGet));
    expect(until([&] { return seen.waiting == kPolls; }, soon()));
    bytes = (resident() - before) / kPolls;
    for (auto& poll : polls) poll.reset();
    expect(server->stop(soon()).has_value());
  });
  check();
  CHECK_TRUE(ran.has_value());
  printf("\nlong_poll_resident_bytes: %ld bytes\n", bytes);
  // One page of the session and two of the stack; with its buffers it would be two or three more.
  CHECK_TRUE(bytes <= 14'000);
}

#if COIR_TLS

TEST_GROUP_BASE(HttpHandlersTls, coir::test::Everywhere){
    template <class Visit>
    void serving(coir::TlsContext context, ServerOptions options, Visit visit){coir::TlsContextSlot slot(context);
everywhere([&] {
  Seen seen;
  seen.test = this;
  options.context = &seen;
  auto server = Server::create(options);
  auto listener = TcpListener::listen(*Address::parse("127.0.0.1:0"));
  const Address address = listener->local_address();
  expect(server && server->add(std::move(*listener), &slot) && server->start());
  visit(address, seen);
  expect(server->stop(soon()).has_value());
});
}
}
;

// On a kernel without epoll the end of a session may hide that of the connection.
TEST(HttpHandlersTls, a_hang_up_ends_a_wait) {
  const coir::TlsContext trusts = coir::test::authority().client();
  for (const bool in_good_order : {false, true}) {
    serving(coir::test::authority().server(), {.handler = hold}, [&](const Address& address, Seen& seen) {
      if (in_good_order && std::string_view(coir::stats().poller) != "epoll") return;
      auto stream = coir::connect_tls(address, "board.test", trusts, soon());
      expect(stream && stream->write(kGet, soon()) && until([&] { return seen.waiting == 1; }, soon()));
      if (!stream) return;
      in_good_order ? stream->close() : stream->abandon();
      expect(until([&] { return seen.cancelled == 1; }, soon()));
    });
  }
}

TEST(HttpHandlersTls, the_next_request_is_no_hang_up_and_is_answered) {
  const coir::TlsContext trusts = coir::test::authority().client();
  serving(coir::test::authority().server(), {.handler = hold}, [&](const Address& address, Seen& seen) {
    auto stream = coir::connect_tls(address, "board.test", trusts, soon());
    expect(stream && stream->write(kGet, soon()) && until([&] { return seen.waiting == 1; }, soon()));
    if (!stream) return;
    expect(stream->write("GET /now HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n", soon()).has_value());
    coir::test::until_polled();
    seen.news.set();
    static char heard[4096];
    std::size_t have = 0;
    while (auto got = stream->read(std::span(heard).subspan(have), soon())) have += *got;
    const std::string_view all(heard, have);
    expect(all.find("news\n") < all.find("now\n") && all.ends_with("now\n") && seen.cancelled == 0);
  });
}

TEST(HttpHandlersTls, the_certificate_of_the_client_is_known) {
  static const coir::test::Authority mine("owner of the board");
  const coir::TlsCertificate own[] = {coir::test::authority().certificate()};
  const coir::TlsCertificate shown = mine.certificate();
  const auto context = coir::TlsContext::server(
      {.certificates = own, .client_authorities = mine.made.certificate, .remember_clients = true});
  const auto trusts =
      coir::TlsContext::client({.authorities = coir::test::authority().made.certificate, .certificate = &shown});
  CHECK_TRUE(context && trusts);
  const auto handler = [](Exchange& exchange) {
    const coir::TlsPeer* const peer = exchange.certificate();
    exchange.respond(200, "text/plain", peer != nullptr ? peer->common_name : "nobody");
  };
  serving(*context, {.handler = handler}, [&](const Address& address, Seen&) {
    auto stream = coir::connect_tls(address, "board.test", *trusts, soon());
    char heard[512];
    std::size_t have = 0;
    expect(stream && stream->write("GET / HTTP/1.0\r\n\r\n", soon()));
    while (auto got = stream ? stream->read(std::span(heard).subspan(have), soon()) : std::unexpected(Error())) {
      have += *got;
    }
    expect(std::string_view(heard, have).ends_with("\r\n\r\nowner of the board"));
  });
}

#endif
