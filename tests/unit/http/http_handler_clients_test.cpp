// After a wait a handler still has its client's content, cases of a select, addresses and certificates, and no buffers;
// over TLS, too. Clients are fibers of the same run.

#include <CppUTest/TestHarness.h>
#include <coir/config.h>
#include <coir/program.h>
#include <coir/select.h>
#include <stdio.h>
#include <string.h>

#include <optional>

#include "tests/support/scale.h"
#include "tests/unit/http/handler_server.h"
#if COIR_TLS
#include "tests/support/tls_pair.h"
#endif

namespace http_handler_clients_test {

using namespace std::chrono_literals;
using namespace coir::test;
using coir::Address;
using coir::Case;
using coir::Deadline;
using coir::Error;
using coir::ErrorCode;
using coir::Event;
using coir::TcpListener;

TEST_GROUP_BASE(HandlerClients, HandlerServer) {};

TEST(HandlerClients, content_is_read_after_a_wait) {
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
    expect(client.say("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 15\r\n\r\n"));
    for (int i = 1; i <= 3; ++i) {
      expect(until([&] { return seen.waiting == i; }, soon()) && client.say("piece"));
    }
    expect(client.hear("all\n"));
  });
}

TEST(HandlerClients, content_that_arrives_while_the_handler_waits_is_kept_and_read_to_its_end) {
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
    expect(client.say("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 15\r\n\r\n"));
    expect(until([&] { return seen.waiting == 1; }, soon()) && client.say("piece"));
    coir::test::until_polled();
    seen.news.set();
    expect(client.say("piecepiece") && client.hear("all\n") && seen.cancelled == 0);
  });
}

TEST(HandlerClients, a_case_tells_that_the_client_is_gone) {
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

TEST(HandlerClients, a_case_tells_a_handler_that_never_waits_that_the_client_is_gone) {
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

TEST(HandlerClients, the_case_for_a_gone_client_is_not_ready_for_the_next) {
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
    expect(next.say("GET /now HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    client.reset();
    expect(next.hear("now\n") && seen.told == 1);
  });
}

TEST(HandlerClients, a_case_tells_that_the_server_stops) {
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

TEST(HandlerClients, the_address_of_the_client_is_known) {
  const auto handler = [](Exchange& exchange) {
    const auto peer = exchange.peer_address();
    char text[Address::kMaxText];
    if (!peer || exchange.certificate() != nullptr) return;
    exchange.respond(200, "text/plain", peer->format(text));
  };
  // The second client's connection has the record of the first's.
  serving({.handler = handler, .max_connections = 1}, [&](Server& server, const Address& address, Seen&) {
    for (int each = 0; each < 2; ++each) {
      Client client(address);
      char text[Address::kMaxText];
      const auto own = client.stream.local_address();
      for (int request = 0; request < 2; ++request) {
        client.have = 0;
        expect(own && client.say(kGet) && client.hear("\r\n\r\n") && client.hear(own->format(text)));
      }
      client.reset();
      expect(until([&] { return server.gauges().open == 0; }, soon()));
    }
  });
}

TEST(HandlerClients, a_handler_without_buffers_still_has_its_request_and_the_next_one_is_kept) {
  const auto handler = [](Exchange& exchange) {
    Seen& seen = seen_by(exchange);
    if (exchange.request().path == "/now") return exchange.respond(200, "text/plain", "now\n");
    exchange.scratch()[0] = 'x';
    exchange.release_buffer();
    if (exchange.request().path == "/at-once") {
      // A page that is given back and touched again costs more than a request.
      seen.expect(exchange.scratch()[0] == 'x');
      return exchange.respond(200, "text/plain", "at once\n");
    }
    // The sleep parks; the news may be there before the handler waits for it.
    const bool waited = coir::sleep(1ms).has_value() && seen.wait();
    seen.expect(exchange.scratch()[0] == '\0');
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
    const std::string_view begin = "piecePOST /now HTTP/1.1\r\nHost: localhost\r\nA: ", end = "\r\n\r\n";
    memcpy(next, begin.data(), begin.size());
    memcpy(next + sizeof next - end.size(), end.data(), end.size());
    Client quick(address);
    expect(quick.say("POST /at-once HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\npiece"));
    expect(quick.hear("at once\n"));
    for (const std::size_t sent_before : {std::size_t{5}, sizeof next}) {
      Client client(address);
      const int before = seen.waiting;
      seen.news.reset();
      static char request[sizeof next + 100];
      constexpr std::string_view kPoll =
          "POST /poll HTTP/1.1\r\nHost: localhost\r\nName: value\r\nContent-Length: 5\r\n\r\n";
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

TEST(HandlerClients, a_long_poll_that_has_released_its_buffer_holds_its_fiber_and_a_page) {
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
    seen_now = &seen;
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

TEST_GROUP_BASE(HandlerClientsTls, HandlerServer) {
  // serving is the group's own, by TLS.
  template <class Visit>
  void serving(coir::TlsContext context, ServerOptions options, Visit visit) {
    coir::TlsContextSlot slot(context);
    HandlerServer::serving(options, &slot, [&](Server&, const Address& address, Seen& seen) { visit(address, seen); });
  }
};

// On a kernel without epoll the end of a session may hide that of the connection.
TEST(HandlerClientsTls, a_hang_up_ends_a_wait) {
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

TEST(HandlerClientsTls, the_next_request_is_no_hang_up_and_is_answered) {
  const coir::TlsContext trusts = coir::test::authority().client();
  serving(coir::test::authority().server(), {.handler = hold}, [&](const Address& address, Seen& seen) {
    auto stream = coir::connect_tls(address, "board.test", trusts, soon());
    expect(stream && stream->write(kGet, soon()) && until([&] { return seen.waiting == 1; }, soon()));
    if (!stream) return;
    expect(stream->write("GET /now HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", soon()).has_value());
    coir::test::until_polled();
    seen.news.set();
    static char heard[4096];
    std::size_t have = 0;
    while (auto got = stream->read(std::span(heard).subspan(have), soon())) have += *got;
    const std::string_view all(heard, have);
    expect(all.find("news\n") < all.find("now\n") && all.ends_with("now\n") && seen.cancelled == 0);
  });
}

TEST(HandlerClientsTls, the_certificate_of_the_client_is_known) {
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

}  // namespace http_handler_clients_test
