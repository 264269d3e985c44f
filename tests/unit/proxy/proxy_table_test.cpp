// Tables of routes that are exchanged while a proxy runs.

#include <CppUTest/TestHarness.h>
#include <coir/http/proxy_table.h>

#include <atomic>

#include "proxy/routes/proxy_state.h"
#include "tests/unit/proxy/gateway.h"

namespace proxy_table_test {

using namespace coir::test;
namespace account = coir::account;
using coir::http::Proxy;
using coir::http::ProxyTable;

namespace {

constexpr std::string_view kEvents =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
constexpr std::string_view kSwitch =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: y\r\n\r\n";

// Text is a request, on the stack of whoever sends it: a buffer of the thread's would be another fiber's meanwhile.
struct Text {
  char bytes[192];
  std::size_t size;
  operator std::string_view() const { return {bytes, size}; }
};
// get and upgrade are requests for a path.
Text get(std::string_view path) {
  Text text;
  text.size = coir::format(text.bytes, "GET ", path, " HTTP/1.1\r\nHost: localhost\r\n\r\n").size();
  return text;
}
Text upgrade(std::string_view path) {
  Text text;
  text.size = coir::format(text.bytes, "GET ", path,
                           " HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                           "Sec-WebSocket-Key: x\r\n\r\n")
                  .size();
  return text;
}

// Upstream answers /events with a stream that says "data: N" when step N is allowed, an upgrade by a tunnel that echoes,
// and all else with hello.
struct Upstream {
  std::atomic<int> step{0};
  std::atomic<int> gone{0};

  void serve(Peer& peer) {
    for (std::string_view head = peer.hear(); !head.empty(); head = peer.hear()) {
      if (head.find("Upgrade") != std::string_view::npos) {
        peer.say(kSwitch);
        for (std::string_view got = peer.hear_content(4); !got.empty(); got = peer.hear_content(4)) peer.say(got);
        break;
      }
      if (head.find("/events") != std::string_view::npos) {
        peer.say(kEvents);
        for (int next = 1; next <= step_count; ++next) {
          if (!until([&] { return step >= next; }, soon())) break;
          char piece[] = "9\r\ndata: 0\n\n\r\n";
          piece[9] = static_cast<char>('0' + next);
          peer.say({piece, sizeof piece - 1});
        }
        peer.until_gone();
        break;
      }
      if (!peer.say(kHello)) break;
    }
    ++gone;
  }
  int step_count = 9;
};

}  // namespace

TEST_GROUP_BASE(ProxyTable, HandlerServer) {
  // Stage is a proxy beside an upstream.
  struct Stage {
    Proxy& proxy;
    Upstream& upstream;
    ScriptedServer& server;

    // table holds a route for each prefix, with the words behind it.
    coir::http::ProxyTable table(std::initializer_list<std::string_view> prefixes, std::string_view words = {}) {
      auto made = ProxyTable::create();
      for (const std::string_view prefix : prefixes) {
        char line[256];
        const auto added = made->add(coir::format(line, prefix, " ", server.url(""), words.empty() ? "" : " ", words));
        if (!added) __builtin_trap();
      }
      return std::move(*made);
    }
  };

  static inline Proxy* proxy_ = nullptr;

  // beside runs `visit` with a server whose handler is a proxy, in every kind of run. Nothing may be left of it.
  template <class Visit>
  void beside(Visit visit) {
    ServerOptions options;
    options.handler = [](Exchange& exchange) {
      if (!proxy_->serve(exchange)) exchange.respond_status(404);
    };
    std::size_t streams = 0, connections = 0;
    std::optional<Upstream> upstream;
    std::optional<ScriptedServer> scripted;
    std::optional<Proxy> proxy;
    serving(options, [&](Server& server, const coir::Address& address, Seen&) {
      streams = account::streams.used();
      upstream.emplace();
      scripted.emplace([&](Peer& peer) { upstream->serve(peer); });
      proxy.emplace();
      proxy_ = &*proxy;
      Stage stage{*proxy, *upstream, *scripted};
      visit(address, stage);
      connections = account::connections.used();
      expect(server.stop(soon()).has_value());
      proxy.reset();
      upstream->step = 9;
      scripted.reset();
      expect(account::streams.used() == streams);
      expect(account::connections.used() <= connections);
    });
  }

  // answers tells what a client is answered with on a connection of its own.
  bool answers(const coir::Address& address, std::string_view path, std::string_view what) {
    coir::test::Client client(address);
    return client.say(get(path)) && client.hear(what);
  }
};

TEST(ProxyTable, a_route_is_chosen_by_the_longest_prefix) {
  beside([&](const coir::Address& address, Stage& stage) {
    expect(answers(address, "/a", "HTTP/1.1 404 "));
    auto table = stage.table({"/a", "/b"});
    const auto applied = stage.proxy.apply(table);
    expect(applied && applied->added == 2 && applied->kept == 0 && applied->removed == 0 && table.size() == 0);
    expect(answers(address, "/a/x", "hello") && answers(address, "/b", "hello"));
    expect(answers(address, "/c", "HTTP/1.1 404 ") && answers(address, "/ab", "HTTP/1.1 404 "));
    expect(answers(address, "/a/%2e%2e/x", "HTTP/1.1 400 "));
  });
}

TEST(ProxyTable, a_route_is_chosen_by_the_path_as_a_server_may_see_it) {
  beside([&](const coir::Address& address, Stage& stage) {
    auto table = stage.table({"/a/b"});
    expect(stage.proxy.apply(table).has_value());
    for (const char* same :
         {"/%61/b/x", "//a///b/x", "/a%2Fb", "/a/%62", "/a/b%2Fx", "/a/b/..x", "/a/b/x..", "/a/b/...;"}) {
      expect(answers(address, same, "hello"));
    }
    for (const char* other : {"/a%252Fb", "/a/bx", "/a/b;x", "/A/b", "/a"}) {
      expect(answers(address, other, "HTTP/1.1 404 "));
    }
    for (const char* climbing : {"/a/b/..%2fx", "/a/b/..\\x", "/a/b/..%5cx", "/a/b/..%5Cx", "/a/b/..;/x", "/a/b/.%2e;y",
                                 "/a/b/..%3b/x", "/a/b/x\\..", "/a/b%2f..%2Fx", "/a/b/x;/../y"}) {
      expect(answers(address, climbing, "HTTP/1.1 400 "));
    }
  });
}

TEST(ProxyTable, streams_and_tunnels_outlive_five_tables) {
  beside([&](const coir::Address& address, Stage& stage) {
    auto first = stage.table({"/kept", "/gone"});
    expect(stage.proxy.apply(first).has_value());
    coir::test::Client kept(address), gone(address), tunnel(address), lost(address);
    expect(kept.say(get("/kept/events")) && kept.hear("\r\n\r\n") && gone.say(get("/gone/events")) &&
           gone.hear("\r\n\r\n"));
    expect(tunnel.say(upgrade("/kept")) && tunnel.hear("\r\n\r\n") && lost.say(upgrade("/gone")) &&
           lost.hear("\r\n\r\n"));
    expect(until([&] { return stage.proxy.state()->view().streams == 4; }, soon()));
    for (int number = 1; number <= 5; ++number) {
      char prefix[16] = {};
      auto table = stage.table({"/kept", coir::format(prefix, "/new", number)});
      const auto applied = stage.proxy.apply(table);
      expect(applied && applied->kept == 1 && applied->added == 1 && applied->removed == 1);
      stage.upstream.step = number;
      char event[] = "data: 0\n\n";
      event[6] = static_cast<char>('0' + number);
      expect(kept.hear(event) && gone.hear(event));
      tunnel.have = lost.have = 0;
      expect(tunnel.say("ping") && tunnel.hear("ping") && lost.say("pong") && lost.hear("pong"));
      // Those that have ended are gone with the next exchange; the one with a stream stays.
      expect(answers(address, prefix, "hello") && answers(address, "/gone", "HTTP/1.1 404 "));
      const auto view = stage.proxy.state()->view();
      expect(view.routes == 2 && view.leaving == 1 && view.streams == 4 && view.groups == 1);
    }
    expect(stage.proxy.state()->counted()->counters().cut.load() == 0 &&
           stage.proxy.state()->counted()->counters().cancelled.load() == 0);
    gone.reset();
    lost.reset();
    expect(until([&] { return stage.proxy.state()->view().streams == 2; }, soon()));
    expect(
        until([&] { return answers(address, "/kept", "hello") && stage.proxy.state()->view().leaving == 0; }, soon()));
    kept.reset();
    tunnel.reset();
    expect(until([&] { return stage.proxy.state()->view().streams == 0; }, soon()));
  });
}

TEST(ProxyTable, an_unchanged_route_keeps_its_pooled_connection) {
  beside([&](const coir::Address& address, Stage& stage) {
    auto first = stage.table({"/a", "/b"});
    expect(stage.proxy.apply(first).has_value());
    coir::test::Client client(address);
    expect(client.say(get("/a")) && client.hear("hello"));
    for (int number = 0; number < 5; ++number) {
      char prefix[16] = {};
      auto table = stage.table({"/a", coir::format(prefix, "/c", number)});
      expect(stage.proxy.apply(table).has_value());
      client.have = 0;
      expect(client.say(get("/a")) && client.hear("hello"));
    }
    expect(stage.server.connections() == 1);
  });
}

TEST(ProxyTable, a_changed_route_with_the_same_servers_keeps_their_group) {
  beside([&](const coir::Address& address, Stage& stage) {
    auto first = stage.table({"/a"});
    expect(stage.proxy.apply(first).has_value() && answers(address, "/a", "hello"));
    auto second = stage.table({"/a"}, "set-response=X-New:1");
    expect(stage.proxy.apply(second).has_value() && answers(address, "/a", "X-New: 1\r\n"));
    expect(stage.server.connections() == 1 && stage.proxy.state()->view().groups == 1);
    auto third = stage.table({"/a"}, "balance=least");
    expect(stage.proxy.apply(third).has_value() && answers(address, "/a", "hello"));
    expect(stage.server.connections() == 2 && stage.proxy.state()->view().groups == 1);
  });
}

TEST(ProxyTable, a_removed_route_ends_on_its_own_and_its_group_with_the_last) {
  beside([&](const coir::Address& address, Stage& stage) {
    auto first = stage.table({"/gone"});
    expect(stage.proxy.apply(first).has_value());
    coir::test::Client stream(address);
    expect(stream.say(get("/gone/events")) && stream.hear("\r\n\r\n"));
    expect(until([&] { return stage.proxy.state()->view().streams == 1; }, soon()));
    auto second = stage.table({});
    const auto applied = stage.proxy.apply(second);
    expect(applied && applied->removed == 1);
    auto view = stage.proxy.state()->view();
    expect(view.routes == 0 && view.groups == 1 && view.leaving == 1);
    expect(answers(address, "/gone", "HTTP/1.1 404 "));
    stage.upstream.step = 1;
    expect(stream.hear("data: 1\n\n"));
    stream.reset();
    expect(until([&] { return stage.proxy.state()->view().streams == 0; }, soon()));
    auto third = stage.table({});
    expect(stage.proxy.apply(third).has_value());
    view = stage.proxy.state()->view();
    expect(view.groups == 0 && view.leaving == 0);
  });
}

TEST(ProxyTable, an_invalid_table_changes_nothing) {
  beside([&](const coir::Address& address, Stage& stage) {
    auto first = stage.table({"/a"});
    expect(stage.proxy.apply(first).has_value());
    const std::size_t used = account::http.used();
    {
      auto table = stage.table({"/b", "/c"});
      expect(table.add("/d https://127.0.0.1:1").value_or(false) == coir::kTls);
      const auto applied = stage.proxy.apply(table);
      expect(applied.has_value() == !coir::kTls);
      if (coir::kTls) {
        expect(applied.error().route == 2 && applied.error().error == coir::ErrorCode::unsupported);
        expect(table.size() == 3 && table[2].prefix == "/d");
        expect(answers(address, "/a", "hello") && answers(address, "/b", "HTTP/1.1 404 "));
      }
    }
    if (coir::kTls) expect(account::http.used() <= used + 64 * 1024 && stage.proxy.state()->view().groups == 1);
  });
}

TEST(ProxyTable, no_memory_changes_nothing) {
  beside([&](const coir::Address& address, Stage& stage) {
    auto first = stage.table({"/a"});
    expect(stage.proxy.apply(first).has_value() && answers(address, "/a", "hello"));
    auto second = stage.table({"/b", "/c"}, "balance=least");
    const std::size_t ceiling = account::http.ceiling();
    for (std::size_t bytes = 0; bytes < 2048; bytes += 64) {
      account::http.set_ceiling(account::http.used() + bytes);
      const auto applied = stage.proxy.apply(second);
      account::http.set_ceiling(ceiling);
      if (applied) break;
      expect(applied.error().error == coir::ErrorCode::no_memory && second.size() == 2);
      expect(stage.proxy.state()->view().routes == 1 && stage.proxy.state()->view().groups == 1);
    }
    expect(stage.proxy.apply(second).has_value());
  });
}

TEST(ProxyTable, tables_change_under_load) {
  beside([&](const coir::Address& address, Stage& stage) {
    auto first = stage.table({"/a", "/b"});
    expect(stage.proxy.apply(first).has_value());
    std::atomic<int> running{4};
    std::atomic<bool> right{true};
    coir::Fiber clients[4];
    for (coir::Fiber& each : clients) {
      each = coir::spawn([&] {
        coir::test::Client client(address);
        for (int i = 0; i < 50; ++i) {
          client.have = 0;
          if (!client.say(get("/a")) || !client.hear("hello")) right = false;
        }
        --running;
      });
      expect(each.started());
    }
    for (int number = 0; running != 0; ++number) {
      char prefix[16] = {};
      auto table = stage.table({"/a", coir::format(prefix, "/n", number)}, number % 2 == 0 ? "weights=2" : "");
      expect(stage.proxy.apply(table).has_value());
      coir::yield();
    }
    for (coir::Fiber& each : clients) static_cast<void>(each.join());
    expect(right);
  });
}

TEST(ProxyTable, wrong_lines_are_refused_with_word_and_cure) {
  auto table = ProxyTable::create();
  CHECK(table.has_value());
  const auto refused = [&](std::string_view line, std::string_view word) {
    const auto added = table->add(line);
    return !added && added.error().word == word && added.error().what[0] != '\0' && added.error().cure[0] != '\0';
  };
  CHECK(table->add("# nothing") == false);
  CHECK(table->add("/a http://b") == true);
  CHECK(refused("/a http://c", "/a"));
  CHECK(table->add("/a http://c host=x") == true);
  CHECK(refused("/.. http://b", "/.."));
  CHECK(refused("/x/%2e/y http://b", "/x/%2e/y"));
  CHECK(refused("/x?y http://b", "/x?y"));
  CHECK(refused("/x ftp://b", "ftp://b"));
  CHECK(refused("/x http://u@b", "http://u@b"));
  CHECK(refused("/x http://b/1,http://b/2", "http://b/2"));
  CHECK_EQUAL(2, table->size());
  CHECK(!table->secure());
  for (char c = 'c'; table->size() < ProxyTable::kMost; ++c) {
    const char line[] = {'/', c, ' ', 'h', 't', 't', 'p', ':', '/', '/', 'b'};
    if (!table->add({line, sizeof line})) break;
  }
}

TEST(ProxyTable, memory_is_charged_and_given_back) {
  const std::size_t before = account::http.used();
  {
    auto table = ProxyTable::create();
    CHECK(table.has_value());
    CHECK(table->add("/a http://127.0.0.1:1,http://127.0.0.1:2").value_or(false));
    const std::size_t planned = table->memory_bytes();
    Proxy proxy;
    const std::size_t alone = account::http.used();
    CHECK(alone > before);
    CHECK(proxy.apply(*table).has_value());
    CHECK(account::http.used() - before <= planned + sizeof(coir::http::ForwardCounters) + 1024);
    CHECK(account::http.used() > alone);
  }
  CHECK_EQUAL(before, account::http.used());
}

}  // namespace proxy_table_test
