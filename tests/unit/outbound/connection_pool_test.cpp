// When a connection that has carried a request carries another, and when it is closed.

#include "net/src/outbound/connection_pool.h"

#include <coir/detail/accounts.h>
#include <coir/tcp.h>

#include <CppUTest/TestHarness.h>

#include "http/message/response_parser.h"
#include "tests/support/both_sides.h"
#include "tests/support/until.h"
#if !COIR_NO_ASYNC
#include "tests/support/everywhere.h"
#endif

namespace connection_pool_test {

using namespace coir;
using namespace coir::http;
using namespace std::chrono_literals;
using coir::test::until;

namespace {

constexpr ConnectionPool::Rules kRules = {.most_resting = 4, .idle_time = 60s};
constexpr ConnectionPool::Rules kWatches = {.most_resting = 4, .idle_time = 60s, .watches = true};

Deadline soon() {
  return Deadline::after(60s);
}

// Pooled is a pool and the server of its connections.
struct Pooled {
  explicit Pooled(const ConnectionPool::Rules& rules) : pool(rules) {}

  // make makes a connection that has been read until nothing was left, as one is that has carried a request.
  PooledConnection* make(TcpStream& peer, std::string_view key = {}) {
    const auto made = pool.make(key);
    if (!made) return nullptr;
    (*made)->stream = std::move(*TcpStream::connect(listener.local_address(), soon()));
    peer = std::move(*listener.accept(soon()));
    char byte;
    static_cast<void>((*made)->stream.read({&byte, 1}, Deadline::now()));
    return *made;
  }
  // rest_one has one rest, and returns the server's end of it.
  TcpStream rest_one(std::string_view key = {}) {
    TcpStream peer;
    if (PooledConnection* const made = make(peer, key)) pool.rest(*made);
    return peer;
  }

  TcpListener listener = std::move(*TcpListener::listen(*Address::parse("127.0.0.1:0")));
  ConnectionPool pool;
};

void close(PooledConnection* connection) {
  if (connection != nullptr) ConnectionPool::close(*connection, true);
}

}  // namespace

TEST_GROUP_BASE(ConnectionPool, coir::test::BothSides) {
  template <class Body>
  void with_pool(const ConnectionPool::Rules& rules, Body body) {
    both_sides([&] {
      const std::size_t used = account::connections.used();
      {
        Pooled pooled(rules);
        body(pooled);
      }
      expect(account::connections.used() == used);
    });
  }
};

TEST(ConnectionPool, a_connection_is_found_by_its_key_the_latest_first) {
  with_pool(kRules, [&](Pooled& pooled) {
    TcpStream peers[3];
    PooledConnection* made[3];
    constexpr std::string_view kKeys[] = {"one", "other", "one"};
    for (int i = 0; i < 3; ++i) made[i] = pooled.make(peers[i], kKeys[i]);
    for (PooledConnection* const each : made) pooled.pool.rest(*each);
    expect(pooled.pool.resting() == 3 && pooled.pool.open() == 3);
    expect(pooled.pool.take("none") == nullptr);
    for (const int i : {2, 0}) {
      PooledConnection* const taken = pooled.pool.take("one");
      expect(taken == made[i] && taken->reused);
      close(taken);
    }
    expect(pooled.pool.take("one") == nullptr && pooled.pool.resting() == 1 && pooled.pool.open() == 1);
  });
}

TEST(ConnectionPool, one_that_has_ended_or_on_which_something_came_is_not_used_again) {
  for (const bool ends : {true, false}) {
    with_pool(kRules, [&](Pooled& pooled) {
      TcpStream peer = pooled.rest_one();
      if (ends) {
        peer.close();
      } else {
        expect(peer.write("HTTP/1.1 408 Late\r\n\r\n", soon()).has_value());
      }
      expect(pooled.pool.take() == nullptr && pooled.pool.open() == 0);
    });
  }
}

TEST(ConnectionPool, one_rests_for_its_time_and_less_than_its_server_keeps_it) {
  with_pool({.most_resting = 4, .idle_time = 2s}, [&](Pooled& pooled) {
    const auto hears = [](PooledConnection& connection, std::string_view keep_alive) {
      const Header field[] = {{"Keep-Alive", keep_alive}};
      ParsedResponse response;
      response.headers = field;
      connection.hear_keep_alive(response);
      return connection.rest_ms;
    };
    TcpStream peers[2];
    PooledConnection* const kept = pooled.make(peers[0]);
    expect(hears(*kept, "timeout=60") == 2'000 && hears(*kept, "max=3, timeout=2") == 1'000);
    const std::int64_t before = monotonic_ns();
    pooled.pool.rest(*kept);
    expect(kept->until_ns >= before + 1'000'000'000 && kept->until_ns <= monotonic_ns() + 1'000'000'000);
    kept->until_ns = before;
    expect(pooled.pool.take() == nullptr && pooled.pool.open() == 0);
    // A server that keeps it for a second may have ended it already.
    PooledConnection* const given_up = pooled.make(peers[1]);
    expect(hears(*given_up, "timeout=1") == 0);
    pooled.pool.rest(*given_up);
    expect(pooled.pool.resting() == 0 && pooled.pool.open() == 0);
  });
}

TEST(ConnectionPool, a_connection_that_has_rested_too_long_is_closed_at_the_next_look) {
  with_pool(kRules, [&](Pooled& pooled) {
    TcpStream peers[2];
    peers[0] = pooled.rest_one("long");
    PooledConnection* const made = pooled.make(peers[1], "short");
    made->rest_ms = 1;
    pooled.pool.rest(*made);
    // It is the latest, in front of one that rests on.
    const std::int64_t ends_ns = monotonic_ns() + 1'000'000;
    until([&] { return monotonic_ns() >= ends_ns; });
    expect(pooled.pool.take("none") == nullptr && pooled.pool.resting() == 1);
    close(pooled.pool.take("long"));
  });
}

TEST(ConnectionPool, the_longest_resting_makes_room) {
  with_pool({.most_resting = 2, .idle_time = 60s, .most_open = 3}, [&](Pooled& pooled) {
    TcpStream peers[4];
    for (int i = 0; i < 3; ++i)
      peers[i] = pooled.rest_one(std::string_view("abc").substr(static_cast<std::size_t>(i), 1));
    expect(pooled.pool.resting() == 2 && pooled.pool.take("a") == nullptr);
    PooledConnection* const open = pooled.make(peers[0], "d");
    PooledConnection* const another = pooled.make(peers[3], "e");
    expect(pooled.pool.open() == 3 && pooled.pool.take("b") == nullptr);
    close(open);
    close(another);
  });
}

TEST(ConnectionPool, memory_that_is_short_is_had_of_what_rests) {
  with_pool(kRules, [&](Pooled& pooled) {
    const TcpStream peer = pooled.rest_one();
    Account& account = account::connections;
    const std::size_t ceiling = account.ceiling();
    account.set_ceiling(account.used());
    expect(Pressure::make_room(account, 100) && pooled.pool.open() == 0);
    account.set_ceiling(ceiling);
  });
}

#if !COIR_NO_ASYNC
TEST_GROUP_BASE(WatchingPool, coir::test::Everywhere) {};

TEST(WatchingPool, a_connection_that_its_server_ends_is_closed_at_once) {
  everywhere([&] {
    Pooled pooled(kWatches);
    TcpStream peers[] = {pooled.rest_one(), pooled.rest_one(), pooled.rest_one()};
    expect(pooled.pool.resting() == 3);
    peers[1].close();
    expect(peers[2].write("x", soon()).has_value());
    until([&] { return pooled.pool.open() == 1; });
    PooledConnection* const left = pooled.pool.take();
    expect(left != nullptr);
    close(left);
  });
}

// The ends come while this fiber keeps its worker: with one worker no wake has run when the pool looks, or ends.
TEST(WatchingPool, an_ended_connection_is_not_used_before_its_wake_has_run) {
  everywhere([&] {
    const std::size_t used = account::connections.used();
    {
      Pooled pooled(kWatches);
      for (int i = 0; i < 4; ++i) pooled.rest_one();
      expect(pooled.pool.take() == nullptr);
    }
    expect(account::connections.used() == used);
  });
}

TEST(WatchingPool, one_rests_again_and_again) {
  everywhere([&] {
    Pooled pooled(kWatches);
    TcpStream peer = pooled.rest_one();
    for (int i = 0; i < 3; ++i) {
      PooledConnection* const taken = pooled.pool.take();
      expect(taken != nullptr);
      if (taken == nullptr) return;
      expect(peer.write("answer", soon()).has_value());
      char answer[8];
      expect(taken->stream.read(answer, soon()).has_value());
      pooled.pool.rest(*taken);
      expect(pooled.pool.resting() == 1);
    }
  });
}
#endif

}  // namespace connection_pool_test
