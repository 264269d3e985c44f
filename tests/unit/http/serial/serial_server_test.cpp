// Fairness of the server without fibers: one connection is served at a time, and none keeps the others waiting.

#include <CppUTest/TestHarness.h>
#include <coir/detail/accounts.h>
#include <coir/http/server.h>
#include <coir/signal.h>
#include <coir/wait.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <string_view>
#include <utility>

#include "net/src/base/buffer_pool.h"

namespace serial_server_test {

using namespace std::chrono_literals;
using coir::Address;
using coir::Deadline;
using coir::ErrorCode;
using coir::TcpListener;
using coir::TcpStream;
using coir::http::Exchange;
using coir::http::Server;
using coir::http::ServerOptions;

namespace {

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: t\r\n\r\n";

Deadline soon() {
  return Deadline::after(20s);
}

void answer(Exchange& exchange) {
  exchange.respond(200, "text/plain", "ok");
}

// Slow enough for any client to keep it busy.
void answer_slowly(Exchange& exchange) {
  usleep(2000);
  answer(exchange);
}

}  // namespace

TEST_GROUP(SerialServer) {
  Server* server = nullptr;
  alignas(Server) char place[sizeof(Server)];
  Address address;
  pthread_t thread;

  void start(const ServerOptions& options) {
    auto made = Server::create(options);
    CHECK(made.has_value());
    server = new (place) Server(std::move(*made));
    auto listener = TcpListener::listen(*Address::parse("127.0.0.1:0"));
    CHECK(listener.has_value());
    address = listener->local_address();
    CHECK(server->add(std::move(*listener)).has_value());
    CHECK(server->start().has_value());
    CHECK(coir::catch_signals({SIGUSR1}).has_value());
    const auto serve = [](void* argument) -> void* {
      static_cast<void>(static_cast<Server*>(argument)->serve_until({SIGUSR1}, 1s));
      return nullptr;
    };
    CHECK_EQUAL(0, pthread_create(&thread, nullptr, serve, server));
  }

  void teardown() override {
    if (server == nullptr) return;
    kill(getpid(), SIGUSR1);
    pthread_join(thread, nullptr);
    server->~Server();
  }

  TcpStream connect() {
    auto stream = TcpStream::connect(address, soon());
    CHECK(stream.has_value());
    return std::move(*stream);
  }

  // status reads one answer and returns the three digits, or 0 at the end of the connection.
  static int status(TcpStream& stream) {
    char text[1024];
    std::size_t have = 0;
    for (;;) {
      auto got = stream.read({text + have, sizeof text - have}, soon());
      if (!got) return 0;
      have += *got;
      const std::string_view heard(text, have);
      const std::size_t end = heard.find("\r\n\r\n");
      if (end == heard.npos) continue;
      const int code = (text[9] - '0') * 100 + (text[10] - '0') * 10 + (text[11] - '0');
      if (code != 200 || heard.ends_with("\r\n\r\nok")) return code;
    }
  }
};

TEST(SerialServer, idle_connections_yield_to_one_that_asks) {
  start({.handler = answer});
  TcpStream kept[10];
  for (TcpStream& stream : kept) {
    stream = connect();
    CHECK(stream.write(kGet, soon()).has_value());
    LONGS_EQUAL(200, status(stream));
  }
  for (TcpStream& stream : kept) {
    CHECK(stream.write(kGet, soon()).has_value());
    LONGS_EQUAL(200, status(stream));
  }
}

TEST(SerialServer, slow_heads_keep_nobody_waiting_and_come_to_their_end) {
  start({.handler = answer, .header_timeout = 60s});
  const std::size_t buffers = coir::account::buffers.used() - coir::Buffer::spare_bytes();
  // Each would have kept the session for 100 ms.
  static TcpStream slow[200];
  for (TcpStream& stream : slow) {
    stream = connect();
    CHECK(stream.write("GET / HT", soon()).has_value());
  }
  for (int i = 0; i < 3; ++i) {
    TcpStream other = connect();
    CHECK(other.write(kGet, soon()).has_value());
    LONGS_EQUAL(200, status(other));
  }
  for (const std::string_view piece : {"TP/1.1\r\n", "Host: t\r\n", "\r\n"}) {
    for (TcpStream& stream : slow) CHECK(stream.write(piece, soon()).has_value());
  }
  for (TcpStream& stream : slow) LONGS_EQUAL(200, status(stream));
  LONGS_EQUAL(buffers, coir::account::buffers.used() - coir::Buffer::spare_bytes());
  for (TcpStream& stream : slow) stream.close();
}

TEST(SerialServer, a_slow_head_behind_requests_is_kept_with_what_has_come_of_it) {
  start({.handler = answer, .header_timeout = 60s});
  TcpStream slow = connect();
  for (std::size_t cut = 1; cut < kGet.size(); ++cut) {
    CHECK(slow.write(kGet, soon()).has_value());
    CHECK(slow.write(kGet.substr(0, cut), soon()).has_value());
    LONGS_EQUAL(200, status(slow));
    TcpStream other = connect();
    CHECK(other.write(kGet, soon()).has_value());
    LONGS_EQUAL(200, status(other));
    CHECK(slow.write(kGet.substr(cut), soon()).has_value());
    LONGS_EQUAL(200, status(slow));
  }
}

TEST(SerialServer, heads_that_do_not_come_in_time_are_answered_408) {
  start({.handler = answer, .header_timeout = 100ms});
  TcpStream slow[20];
  for (TcpStream& stream : slow) {
    stream = connect();
    CHECK(stream.write("GET / HT", soon()).has_value());
  }
  for (TcpStream& stream : slow) LONGS_EQUAL(408, status(stream));
  // A byte now and then renews nothing.
  TcpStream drips = connect();
  CHECK(drips.write("GET / HTTP/1.1\r\nX: ", soon()).has_value());
  const Deadline patience = soon();
  while (!coir::wait(drips.fd(), coir::Direction::readable, Deadline::after(10ms))) {
    CHECK(!patience.passed());
    static_cast<void>(drips.write("x", soon()));
  }
  LONGS_EQUAL(408, status(drips));
}

TEST(SerialServer, slow_heads_have_a_second_when_the_server_stops) {
  start({.handler = answer, .header_timeout = 60s});
  TcpStream slow = connect();
  CHECK(slow.write("GET / HT", soon()).has_value());
  TcpStream other = connect();
  CHECK(other.write(kGet, soon()).has_value());
  LONGS_EQUAL(200, status(other));
  kill(getpid(), SIGUSR1);
  // The other is closed once the server has begun to stop.
  LONGS_EQUAL(0, status(other));
  CHECK(slow.write("TP/1.1\r\nHost: t\r\n\r\n", soon()).has_value());
  LONGS_EQUAL(200, status(slow));
  pthread_join(thread, nullptr);
  std::exchange(server, nullptr)->~Server();
}

TEST(SerialServer, a_slow_head_that_nobody_minds_has_its_time) {
  start({.handler = answer, .header_timeout = 60s});
  TcpStream slow = connect();
  CHECK(slow.write("GET / HT", soon()).has_value());
  // Longer than a turn, in which nothing comes.
  CHECK(coir::wait(slow.fd(), coir::Direction::readable, Deadline::after(300ms)).error() == ErrorCode::timed_out);
  CHECK(slow.write("TP/1.1\r\nHost: t\r\n\r\n", soon()).has_value());
  LONGS_EQUAL(200, status(slow));
}

TEST(SerialServer, the_connection_that_was_idle_for_longest_makes_room) {
  start({.handler = answer, .max_connections = 2, .evict_after = 0ms});
  TcpStream first = connect(), second, third;
  CHECK(first.write(kGet, soon()).has_value());
  LONGS_EQUAL(200, status(first));
  second = connect();
  CHECK(second.write(kGet, soon()).has_value());
  LONGS_EQUAL(200, status(second));
  third = connect();
  CHECK(third.write(kGet, soon()).has_value());
  LONGS_EQUAL(200, status(third));
  LONGS_EQUAL(0, status(first));
  CHECK(second.write(kGet, soon()).has_value());
  LONGS_EQUAL(200, status(second));
}

TEST(SerialServer, a_client_that_never_pauses_is_asked_to_come_back_when_others_wait) {
  start({.handler = answer_slowly});
  TcpStream flood = connect();
  static TcpStream* flooding;
  flooding = &flood;
  static std::atomic<bool> ended;
  ended = false;
  pthread_t writer, reader;
  const auto pour = [](void*) -> void* {
    char many[100 * kGet.size()];
    for (std::size_t i = 0; i < 100; ++i) memcpy(many + i * kGet.size(), kGet.data(), kGet.size());
    while (!ended && flooding->write({many, sizeof many}, soon())) {
    }
    return nullptr;
  };
  const auto drink = [](void*) -> void* {
    char much[65536];
    while (flooding->read(much, soon())) {
    }
    ended = true;
    return nullptr;
  };
  CHECK_EQUAL(0, pthread_create(&writer, nullptr, pour, nullptr));
  CHECK_EQUAL(0, pthread_create(&reader, nullptr, drink, nullptr));
  // Served, and wanting to be again, until the other has been sent away.
  TcpStream other = connect();
  const Deadline patience = soon();
  bool served = false;
  while (!ended && !patience.passed()) {
    const bool again = other.write(kGet, soon()).has_value() && status(other) == 200;
    served |= again;
    // It has paused for longer than a turn, and was sent away itself.
    if (!again) other = connect();
  }
  const bool sent_away = ended;
  ended = true;
  flood.shutdown_write();
  pthread_join(writer, nullptr);
  ::shutdown(flood.fd(), SHUT_RD);
  pthread_join(reader, nullptr);
  CHECK(served);
  CHECK(sent_away);
}

}  // namespace serial_server_test
