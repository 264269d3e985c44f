// Events that end a handler's wait for something else than its client, and events that do not: the client's reset, the
// end of its side, the server's stop. Clients are fibers of the same run.

#include <CppUTest/TestHarness.h>
#include <coir/blocking.h>
#include <coir/events.h>
#include <coir/http/websocket.h>
#include <coir/nursery.h>
#include <coir/program.h>
#include <sys/mman.h>
#include <unistd.h>

#include "net/src/socket/kernel.h"
#include "tests/support/scale.h"
#include "tests/unit/http/handler_server.h"

namespace http_handlers_test {

using namespace std::chrono_literals;
using namespace coir::test;
using coir::Address;
using coir::Case;
using coir::Deadline;
using coir::Error;
using coir::ErrorCode;
using coir::Event;
using coir::TcpListener;

namespace {

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

void begin_chunks(Exchange& exchange) {
  exchange.start(200).fixed("Content-Type: text/plain\r\n");
  seen_by(exchange).expect(exchange.begin_chunked().has_value());
}

// write_late is for a child: its handler has begun to wait by then.
void write_late(Exchange& exchange) {
  for (int turn = 0; turn < 20; ++turn) coir::yield_to_events();
  seen_by(exchange).expect(exchange.write("first") && exchange.flush());
}

// hear_large returns how much of an answer the client gets.
std::size_t hear_large(Client& client) {
  static char piece[65536];
  std::size_t heard = 0;
  while (auto got = client.stream.read(piece, soon())) heard += *got;
  return heard;
}

}  // namespace

TEST_GROUP_BASE(HttpHandlers, HandlerServer) {};

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

TEST(HttpHandlers, a_request_before_the_end_of_the_clients_side_is_answered) {
  serving({.handler = hold}, [&](Server&, const Address& address, Seen& seen) {
    Client client(address);
    expect(client.say("GET / HTTP/1.1\r\nHost: t\r\n\r\nGET /now HTTP/1.1\r\nHost: t\r\n\r\n"));
    expect(until([&] { return seen.waiting == 1; }, soon()));
    client.end_its_side();
    expect(client.hear("nothing\n") && client.hear("now\n") && client.hear_the_end());
  });
}

// To close over bytes that nobody has read would reset the connection.
TEST(HttpHandlers, the_last_answer_arrives_in_spite_of_bytes_behind_its_request) {
  serving({.handler = hold}, [&](Server&, const Address& address, Seen& seen) {
    Client client(address);
    expect(client.say("GET / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n"));
    expect(until([&] { return seen.waiting == 1; }, soon()) && client.say("\r\n"));
    seen.news.set();
    expect(client.hear("news\n") && client.hear_the_end());
  });
}

// On a kernel without epoll this is not noticed.
TEST(HttpHandlers, a_hang_up_behind_a_request_that_nobody_has_read_ends_a_wait) {
  for (const unsigned workers : {1u, 2u}) {
    const auto ran = coir::run_until_idle({.workers = workers}, [&] {
      if (std::string_view(coir::stats().poller) != "epoll") return;
      Seen seen;
      seen.test = this;
      seen_now = &seen;
      auto server = Server::create({.handler = hold});
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
  for (const coir::http::Handler handler : {answer_large, answer_large_after_a_wait}) {
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
  for (const coir::http::Handler handler : {answer_large, answer_large_after_a_wait}) {
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

// A use of the exchange takes the watch from its handler, which waits on.
TEST(HttpHandlers, a_hang_up_ends_the_waits_of_a_child_that_has_written) {
  const auto handler = [](Exchange& exchange) {
    Seen& seen = seen_by(exchange);
    begin_chunks(exchange);
    coir::Nursery nursery;
    nursery.start([&] {
      write_late(exchange);
      seen.wait();
    });
    const auto joined = nursery.join();
    seen.expect(!joined && joined.error() == ErrorCode::cancelled);
  };
  enum class End { reset, own_side, stop };
  for (const End end : {End::reset, End::own_side, End::stop}) {
    serving({.handler = handler}, [&](Server& server, const Address& address, Seen& seen) {
      Client client(address);
      expect(client.say(kGet) && client.hear("first") && until([&] { return seen.waiting == 1; }, soon()));
      if (end == End::stop) {
        server.begin_stop();
      } else {
        end == End::reset ? client.reset() : client.end_its_side();
      }
      expect(until([&] { return seen.cancelled == 1; }, soon()));
    });
  }
}

// Work of the thread pool is not ended by the end of a client, whatever a child writes meanwhile.
TEST(HttpHandlers, a_child_that_writes_leaves_its_handlers_blocking_work_alone) {
  const auto handler = [](Exchange& exchange) {
    Seen& seen = seen_by(exchange);
    begin_chunks(exchange);
    coir::Nursery nursery;
    nursery.start([&] {
      until([&] { return seen.waiting == 1; });
      write_late(exchange);
    });
    const auto worked = coir::blocking([&seen] {
      ++seen.waiting;
      until([&seen] { return seen.go.load(); });
      return 7;
    });
    seen.expect(worked && *worked == 7);
    static_cast<void>(nursery.join());
    ++seen.answered;
  };
  for (const bool stops : {false, true}) {
    serving({.handler = handler}, [&](Server& server, const Address& address, Seen& seen) {
      Client client(address);
      expect(client.say(kGet) && client.hear("first"));
      stops ? server.begin_stop() : client.end_its_side();
      coir::test::until_polled();
      seen.go = true;
      expect(until([&] { return seen.answered == 1; }, soon()));
    });
  }
}

TEST(HttpHandlers, a_child_writes_while_its_handler_begins_wait_after_wait) {
  constexpr int kPieces =
      coir::test::scaled({.plain = 2'000, .address_sanitized = 500, .thread_sanitized = 500, .emulated = 100});
  const auto handler = [](Exchange& exchange) {
    Seen& seen = seen_by(exchange);
    begin_chunks(exchange);
    std::atomic<bool> written = false;
    coir::Nursery nursery;
    nursery.start([&] {
      for (int piece = 0; piece < kPieces; ++piece) seen.expect(exchange.write("piece") && exchange.flush());
      written = true;
    });
    while (!written) static_cast<void>(coir::sleep(1us));
    seen.expect(nursery.join().has_value() && exchange.write("the end"));
    ++seen.answered;
  };
  serving({.handler = handler}, [&](Server&, const Address& address, Seen& seen) {
    Client client(address);
    expect(client.say("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n") && client.hear_the_end());
    expect(seen.answered == 1);
  });
}

TEST(HttpHandlers, the_stop_of_the_server_does_not_cut_a_childs_call_short) {
  static int file;
  const auto by_a_child = [](Exchange& exchange, void (*answer)(Exchange&)) {
    coir::Nursery nursery;
    nursery.start([&] { answer(exchange); });
    static_cast<void>(nursery.join());
  };
  const coir::http::Handler handlers[] = {
      [=](Exchange& exchange) { by_a_child(exchange, answer_large); },
      [=](Exchange& exchange) {
        by_a_child(exchange, [](Exchange& given) {
          ++seen_by(given).waiting;
          seen_by(given).compute();
          given.start(200).fixed("Content-Type: text/plain\r\n");
          seen_by(given).expect(given.begin_fixed(sizeof large) && given.send_file(file, 0, sizeof large));
        });
      }};
  file = memfd_create("large", MFD_CLOEXEC);
  CHECK_EQUAL(0, ftruncate(file, sizeof large));
  for (const auto& handler : handlers) {
    serving({.handler = handler}, [&](Server& server, const Address& address, Seen& seen) {
      Client client(address);
      expect(client.say(kGet) && until([&] { return seen.waiting == 1; }, soon()));
      seen.go = true;
      expect(client.hear("HTTP/1.1 200 "));
      server.begin_stop();
      coir::test::until_polled();
      expect(hear_large(client) + client.have > sizeof large);
    });
  }
  close(file);
}

TEST(HttpHandlers, a_child_reads_what_comes_piece_by_piece_while_its_handler_waits) {
  static constexpr int kPieces = 100;
  const auto handler = [](Exchange& exchange) {
    Seen& seen = seen_by(exchange);
    coir::Nursery nursery;
    nursery.start([&] {
      char byte[1];
      while (exchange.read_body(byte)) ++seen.told;
    });
    seen.expect(nursery.join().has_value());
    exchange.respond(200, "text/plain", seen.told == kPieces ? "whole\n" : "cut off\n");
  };
  serving({.handler = handler}, [&](Server&, const Address& address, Seen& seen) {
    Client client(address);
    expect(client.say("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"));
    for (int piece = 0; piece < kPieces; ++piece) {
      expect(client.say("x") && until([&] { return seen.told > piece; }, soon()));
    }
    expect(client.hear("whole\n"));
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

TEST(HttpHandlers, the_end_of_one_handler_does_not_reach_the_next_of_its_fiber) {
  serving({.handler = hold, .max_active = 1}, [&](Server& server, const Address& address, Seen& seen) {
    for (int round = 1; round <= 3; ++round) {
      seen.news.reset();
      // The end of a connection of the round before would wait in the queue, too.
      expect(until([&] { return server.gauges().open == 0; }, soon()));
      Client gone(address), next(address);
      expect(gone.say(kGet) && until([&] { return seen.waiting == 2 * round - 1; }, soon()));
      // It waits in the queue by then, so that the same fiber serves it; but where this took so long that the handler has
      // given its place back.
      expect(next.say(kGet) &&
             until([&] { return server.gauges().waiting == 1 || seen.waiting == 2 * round; }, soon()));
      gone.reset();
      expect(until([&] { return seen.waiting == 2 * round && seen.cancelled == round; }, soon()));
      seen.news.set();
      expect(next.hear("news\n") && seen.cancelled == round);
    }
  });
}

// Its fibers, of which the reaper closes what is idle, are neither joined nor cancelled with whoever has started it.
TEST(HttpHandlers, a_server_outlives_the_nursery_in_which_it_was_started) {
  everywhere([&] {
    Seen seen;
    seen.test = this;
    seen_now = &seen;
    auto server = Server::create({.handler = hold, .idle_timeout = 100ms});
    auto listener = TcpListener::listen(*Address::parse("127.0.0.1:0"));
    const Address address = listener->local_address();
    {
      coir::Nursery nursery;
      Event started;
      nursery.start([&] {
        expect(server->add(std::move(*listener)).has_value() && server->start().has_value());
        started.set();
      });
      expect(started.wait(soon()).has_value());
      nursery.cancel();
      static_cast<void>(nursery.join());
    }
    Client client(address);
    expect(client.say("GET /now HTTP/1.1\r\nHost: t\r\n\r\n") && client.hear("now\n") && client.hear_the_end());
    expect(server->stop(soon()).has_value());
  });
}

// Scopes of the handler are open where it opens the stream.
TEST(HttpHandlers, a_stream_is_opened_in_a_scope_or_a_nursery_behind_a_wait_that_the_clients_end_has_ended) {
  static constexpr std::string_view kUpgrade =
      "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
  const auto in_a_scope = [](Exchange& exchange) {
    const coir::CancelScope patience(Deadline::after(24h));
    seen_by(exchange).expect(!seen_by(exchange).wait());
    const auto stream = coir::http::EventStream::open(exchange);
    // The end of the wait before does not apply to the stream.
    seen_by(exchange).expect(stream && !coir::cancelled());
    ++seen_by(exchange).answered;
  };
  const auto in_a_nursery = [](Exchange& exchange) {
    coir::Nursery nursery;
    seen_by(exchange).expect(!seen_by(exchange).wait());
    const auto socket = coir::http::accept_websocket(exchange);
    seen_by(exchange).expect(socket && !coir::cancelled());
    ++seen_by(exchange).answered;
  };
  for (const bool socket : {false, true}) {
    for (const bool stops : {false, true}) {
      const ServerOptions options =
          socket ? ServerOptions{.handler = in_a_nursery} : ServerOptions{.handler = in_a_scope};
      serving(options, [&](Server& server, const Address& address, Seen& seen) {
        Client client(address);
        expect(client.say(socket ? kUpgrade : kGet) && until([&] { return seen.waiting == 1; }, soon()));
        stops ? server.begin_stop() : client.end_its_side();
        expect(client.hear(socket ? "HTTP/1.1 101 " : "HTTP/1.1 200 ") && client.hear("\r\n\r\n"));
        expect(until([&] { return seen.answered == 1; }, soon()));
      });
    }
  }
}

}  // namespace http_handlers_test
