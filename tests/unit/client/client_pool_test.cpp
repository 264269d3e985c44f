// When a client's connections are kept, used again, given up and replaced.

#include <coir/detail/accounts.h>
#include <coir/http/client.h>
#include <coir/pressure.h>

#include <CppUTest/TestHarness.h>

#include "tests/support/both_sides.h"
#include "tests/support/folder.h"
#include "tests/support/until.h"
#include "tests/unit/client/scripted_server.h"
#if !COIR_NO_ASYNC
#include <coir/nursery.h>
#include <coir/program.h>
#endif

namespace client_pool_test {

using namespace std::chrono_literals;
using namespace coir::http;
using coir::Deadline;
using coir::Error;
using coir::ErrorCode;
using coir::test::answer_all;
using coir::test::Peer;
using coir::test::ScriptedServer;
using coir::test::until;

namespace {

constexpr std::string_view kHello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

Deadline patience() {
  return Deadline::after(60s);
}

bool hello(std::expected<Response, Error>&& answer) {
  if (!answer) return false;
  const auto got = answer->text();
  return got && *got == "hello";
}

bool asks(Client& client, std::string_view url) {
  return hello(client.get(url, {.deadline = patience()}));
}

bool asks(Client& client, const ScriptedServer& server) {
  return asks(client, server.url("/"));
}

}  // namespace

TEST_GROUP_BASE(ClientPool, coir::test::BothSides) {
  template <class Body>
  void with_client(const ClientOptions& options, Body body) {
    both_sides([&] {
      const std::size_t connections = coir::account::connections.used();
      {
        auto client = Client::create(options);
        expect(client.has_value());
        if (client) body(*client);
      }
      expect(coir::account::connections.used() == connections);
    });
  }
};

TEST(ClientPool, uses_a_connection_again) {
  with_client({}, [&](Client& client) {
    const ScriptedServer server(answer_all(kHello));
    for (int i = 0; i < 3; ++i) expect(asks(client, server) && client.resting() == 1 && client.open() == 1);
    expect(server.connections() == 1);
  });
}

TEST(ClientPool, has_a_connection_back_with_the_last_byte) {
  for (const std::string_view answer :
       {kHello, std::string_view("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")}) {
    with_client({}, [&](Client& client) {
      const ScriptedServer server(answer_all(answer));
      auto response = client.get(server.url("/"), {.deadline = patience()});
      char content[5];
      std::size_t have = 0;
      while (response && have < sizeof content) {
        const auto got = response->read(std::span(content).subspan(have));
        if (!got) break;
        have += *got;
      }
      expect(have == sizeof content && client.resting() == 1);
    });
  }
}

TEST(ClientPool, takes_a_host_in_capitals_for_the_same) {
  with_client({}, [&](Client& client) {
    const ScriptedServer server(answer_all(kHello));
    char text[32];
    snprintf(text, sizeof text, "127.0.0.1:%u", server.port());
    const auto at = coir::Address::parse(text);
    for (const std::string_view url : {"http://AZaz.test/", "http://azAZ.test/"}) {
      expect(hello(client.get(url, {.deadline = patience(), .to = &*at})));
    }
    expect(server.connections() == 1);
  });
}

TEST(ClientPool, takes_no_connection_to_another_address) {
  with_client({}, [&](Client& client) {
    const ScriptedServer servers[] = {ScriptedServer(answer_all(kHello)), ScriptedServer(answer_all(kHello))};
    for (const auto& server : servers) {
      char text[32];
      snprintf(text, sizeof text, "127.0.0.1:%u", server.port());
      const auto at = coir::Address::parse(text);
      expect(hello(client.get("http://board.test/", {.deadline = patience(), .to = &*at})));
      expect(server.connections() == 1);
    }
  });
}

// A link-local address is another machine's behind each interface. The kernel looks at the interface for those alone, so
// that one server is reached by both here.
TEST(ClientPool, takes_no_connection_of_another_interface) {
  with_client({}, [&](Client& client) {
    const ScriptedServer server(answer_all(kHello));
    for (const std::uint32_t scope : {1u, 2u, 2u}) {
      sockaddr_in6 in{};
      in.sin6_family = AF_INET6;
      in.sin6_port = htons(server.port());
      in.sin6_scope_id = scope;
      expect(inet_pton(AF_INET6, "::ffff:127.0.0.1", &in.sin6_addr) == 1);
      const auto at = coir::Address::from_sockaddr(reinterpret_cast<const sockaddr*>(&in), sizeof in);
      expect(hello(client.get("http://board.test/", {.deadline = patience(), .to = &at})));
    }
    expect(server.connections() == 2);
  });
}

// Names of files, unlike those of hosts, differ by case.
TEST(ClientPool, takes_no_connection_to_another_unix_socket) {
  coir::test::Folder folder;
  char paths[2][128];
  for (int i = 0; i < 2; ++i) snprintf(paths[i], sizeof paths[i], "%s/%s", folder.path(), i == 0 ? "socket" : "SOCKET");
  with_client({}, [&](Client& client) {
    const ScriptedServer servers[] = {ScriptedServer(answer_all(kHello), paths[0]),
                                      ScriptedServer(answer_all(kHello), paths[1])};
    for (int i = 0; i < 2; ++i) {
      char text[200];
      snprintf(text, sizeof text, "unix:%s", paths[i]);
      const auto at = coir::Address::parse(text);
      expect(at && hello(client.get("http://board.test/", {.deadline = patience(), .to = &*at})));
      expect(servers[i].connections() == 1);
    }
    client.close_resting();
  });
}

TEST(ClientPool, drops_a_connection_with_bytes_behind_a_response) {
  with_client({}, [&](Client& client) {
    const ScriptedServer server(answer_all("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n"));
    expect(asks(client, server) && client.resting() == 0);
    expect(asks(client, server) && server.connections() == 2);
  });
}

TEST(ClientPool, looks_at_a_resting_connection_before_it_is_used) {
  for (const bool stray : {false, true}) {
    with_client({}, [&](Client& client) {
      std::atomic<unsigned> requests{0};
      std::atomic<int> resting{-1};
      const ScriptedServer server([&](Peer& peer) {
        while (!peer.hear().empty()) {
          ++requests;
          peer.say(kHello);
          if (peer.number != 0) continue;
          if (stray) {
            peer.say("x");
          } else {
            peer.stop_sending();
          }
          resting = 1;
        }
      });
      expect(asks(client, server));
      until([&] { return resting == 1; });
      // POST is not retried: it has to go over a new connection at once.
      expect(hello(client.post(server.url("/"), "", "", {.deadline = patience()})));
      expect(requests == 2 && server.connections() == 2);
    });
  }
}

// stale_server closes its first connection with the second request on it, as if its idle time were up.
struct StaleServer {
  explicit StaleServer(std::string_view first_words = {})
      : server([this, first_words](Peer& peer) {
          while (!peer.hear().empty()) {
            ++requests;
            if (peer.number == 0 && requests == 2) {
              peer.say(first_words);
              return;
            }
            peer.say(kHello);
          }
        }) {}
  std::atomic<unsigned> requests{0};
  ScriptedServer server;
};

TEST(ClientPool, repeats_an_idempotent_request_on_a_stale_connection_once) {
  with_client({}, [&](Client& client) {
    StaleServer stale;
    expect(asks(client, stale.server));
    expect(asks(client, stale.server));
    expect(stale.requests == 3 && stale.server.connections() == 2);
  });
}

TEST(ClientPool, repeats_a_request_on_a_new_connection_not_on_another_stale_one) {
  with_client({}, [&](Client& client) {
    // Each of the first two connections ends with the second request on it.
    std::atomic<unsigned> requests{0};
    const ScriptedServer server([&](Peer& peer) {
      for (unsigned served = 0; !peer.hear().empty(); ++served) {
        ++requests;
        if (peer.number < 2 && served == 1) return;
        // The new one leads elsewhere first: the request behind a redirect takes what rests.
        peer.say(peer.number == 2 && served == 0
                     ? std::string_view("HTTP/1.1 302 Go\r\nLocation: /end\r\nContent-Length: 0\r\n\r\n")
                     : kHello);
      }
    });
    auto first = client.get(server.url("/"), {.deadline = patience()});
    expect(asks(client, server) && hello(std::move(first)) && client.resting() == 2);
    expect(asks(client, server) && requests == 5 && server.connections() == 3);
  });
}

TEST(ClientPool, never_repeats_a_post_not_even_one_without_content) {
  for (const std::string_view content : {"", "x"}) {
    with_client({}, [&](Client& client) {
      StaleServer stale;
      expect(asks(client, stale.server));
      const auto answer = client.post(stale.server.url("/"), content, "", {.deadline = patience()});
      expect(!answer.has_value());
      expect(stale.requests == 2 && stale.server.connections() == 1);
    });
  }
}

TEST(ClientPool, repeats_a_request_to_a_peer_that_vanished_while_its_connection_rested) {
  with_client({}, [&](Client& client) {
    std::atomic<bool> gone{false}, over{false};
    const ScriptedServer server([&](Peer& peer) {
      peer.hear();
      peer.say(kHello);
      if (peer.number != 0) return;
      gone = peer.vanish();
      until([&] { return over.load(); });
      peer.come_back();
    });
    expect(asks(client, server));
    until([&] { return gone.load(); });
    expect(asks(client, server) && server.connections() == 2);
    over = true;
  });
}

// A second is longer than the time between two looks at a peer that is silent.
TEST(ClientPool, waits_for_a_peer_that_has_heard_the_request) {
  with_client({}, [&](Client& client) {
    const ScriptedServer server([&](Peer& peer) {
      for (int served = 0; !peer.hear().empty(); ++served) {
        if (served == 1) usleep(1'200'000);
        peer.say(kHello);
      }
    });
    expect(asks(client, server) && asks(client, server) && server.connections() == 1);
  });
}

TEST(ClientPool, never_repeats_what_was_begun_to_be_answered) {
  with_client({}, [&](Client& client) {
    StaleServer stale("HT");
    expect(asks(client, stale.server));
    const auto answer = client.get(stale.server.url("/"), {.deadline = patience()});
    expect(!answer && answer.error() == ErrorCode::truncated);
    expect(stale.requests == 2);
  });
}

TEST(ClientPool, never_repeats_on_a_connection_that_was_new) {
  with_client({}, [&](Client& client) {
    std::atomic<unsigned> requests{0};
    const ScriptedServer server([&](Peer& peer) {
      peer.hear();
      ++requests;
    });
    const auto answer = client.get(server.url("/"), {.deadline = patience()});
    expect(!answer && answer.error() == ErrorCode::end_of_stream && requests == 1 && server.connections() == 1);
  });
}

TEST(ClientPool, repeats_content_only_if_it_can_begin_again) {
  struct Once : Upload {
    bool given = false;
  };
  for (const bool rewinds : {false, true}) {
    with_client({}, [&](Client& client) {
      StaleServer stale;
      expect(asks(client, stale.server));
      Once upload;
      upload.size = 0;
      upload.read = [](Upload&, std::span<char>) noexcept -> std::expected<std::size_t, Error> { return 0; };
      if (rewinds) upload.rewind = [](Upload&) noexcept { return true; };
      auto answer =
          client.request({.url = stale.server.url("/"), .deadline = patience(), .method = "PUT", .upload = &upload});
      expect(hello(std::move(answer)) == rewinds);
    });
  }
}

TEST(ClientPool, rests_no_longer_than_the_server_would) {
  const auto rests = [&](std::string_view answer, const ClientOptions& options, std::size_t wanted) {
    with_client(options, [&](Client& client) {
      const ScriptedServer server(answer_all(answer));
      expect(asks(client, server) && client.resting() == wanted);
    });
  };
  rests("HTTP/1.1 200 OK\r\nKeep-Alive: max=5, timeout=1\r\nContent-Length: 5\r\n\r\nhello", {}, 0);
  rests("HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5\r\nContent-Length: 5\r\n\r\nhello", {}, 1);
  rests("HTTP/1.1 200 OK\r\nKeep-Alive: timeout=9223372036854775807\r\nContent-Length: 5\r\n\r\nhello", {}, 1);
  rests("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", {}, 0);
  rests("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", {}, 0);
  ClientOptions never;
  never.idle_time = 0ms;
  rests(kHello, never, 0);
}

TEST(ClientPool, closes_what_has_rested_too_long) {
  ClientOptions options;
  options.idle_time = 1ms;
  with_client(options, [&](Client& client) {
    const ScriptedServer server(answer_all(kHello));
    expect(asks(client, server));
    const auto since = coir::monotonic_ns();
    until([&] { return coir::monotonic_ns() - since > 2'000'000; });
    expect(asks(client, server) && server.connections() == 2 && client.open() <= 1);
  });
}

TEST(ClientPool, keeps_as_many_as_it_may) {
  ClientOptions options;
  options.max_resting = 2;
  with_client(options, [&](Client& client) {
    const ScriptedServer servers[] = {ScriptedServer(answer_all(kHello)), ScriptedServer(answer_all(kHello)),
                                      ScriptedServer(answer_all(kHello))};
    for (const auto& server : servers) expect(asks(client, server));
    expect(client.resting() == 2 && client.open() == 2);
    // The latest two are those that are kept.
    expect(asks(client, servers[2]) && asks(client, servers[1]));
    expect(servers[2].connections() == 1 && servers[1].connections() == 1);
  });
}

TEST(ClientPool, makes_room_for_new_connections_by_those_that_rest) {
  ClientOptions options;
  options.max_connections = 1;
  with_client(options, [&](Client& client) {
    const ScriptedServer one(answer_all(kHello));
    const ScriptedServer other(answer_all(kHello));
    expect(asks(client, one) && asks(client, other) && client.open() == 1);
    auto held = client.get(one.url("/"), {.deadline = patience()});
    const auto refused = client.get(other.url("/"), {.deadline = Deadline::after(1ms)});
    // The one that rested has gone before: there is one at any time.
    expect(client.open() == 1);
    expect(held && !refused && (refused.error() == ErrorCode::timed_out || refused.error() == ErrorCode::limit));
    // The place is free with the last byte of the content.
    expect(hello(std::move(held)) && asks(client, other));
  });
}

TEST(ClientPool, gives_its_connections_up_when_memory_is_short) {
  with_client({}, [&](Client& client) {
    const ScriptedServer server(answer_all(kHello));
    expect(asks(client, server) && client.resting() == 1);
    auto& account = coir::account::connections;
    const std::size_t ceiling = account.ceiling();
    account.set_ceiling(account.used());
    expect(coir::Pressure::make_room(account, 100) && client.resting() == 0);
    account.set_ceiling(ceiling);
  });
}

TEST(ClientPool, ends_in_good_order_where_all_was_read_and_by_a_reset_elsewhere) {
  for (const bool reads : {true, false}) {
    with_client({}, [&](Client& client) {
      std::atomic<int> end{0};  // 1: in good order
      const ScriptedServer server([&](Peer& peer) {
        peer.hear();
        peer.say(kHello);
        char byte;
        end = ::recv(peer.fd(), &byte, 1, 0) == 0 ? 1 : 2;
      });
      {
        auto answer = client.get(server.url("/"), {.deadline = patience()});
        expect(answer.has_value());
        if (reads) expect(hello(std::move(answer)));
      }
      client.close_resting();
      until([&] { return end != 0; });
      expect(end == (reads ? 1 : 2));
    });
  }
}

TEST(ClientPool, drops_a_connection_whose_response_was_not_read) {
  with_client({}, [&](Client& client) {
    const ScriptedServer server(answer_all(kHello));
    {
      auto answer = client.get(server.url("/"), {.deadline = patience()});
    }
    expect(client.open() == 0);
  });
}

#if !COIR_NO_ASYNC
TEST(ClientPool, is_shared_by_fibers) {
  ClientOptions options;
  options.max_connections = 4;
  for (const unsigned workers : {1u, 2u}) {
    const ScriptedServer server(answer_all(kHello));
    const std::string_view url = server.url("/");  // of this thread
    std::atomic<int> good{0};
    const auto ran = coir::run_until_idle({.workers = workers}, [&] {
      auto client = Client::create(options);
      expect(client.has_value());
      if (!client) return;
      coir::Nursery nursery;
      for (int i = 0; i < 32; ++i) {
        nursery.start([&] {
          for (int round = 0; round < 5; ++round) good += asks(*client, url);
        });
      }
      expect(nursery.join().has_value() && client->open() <= 4);
    });
    CHECK_TRUE(ran.has_value());
    LONGS_EQUAL(160, good);
    CHECK(server.connections() <= 4);
    check();
  }
}
#endif

}  // namespace client_pool_test
