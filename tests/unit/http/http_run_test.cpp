// The three ways to run one handler: run, run_pool and run_async.

#include <CppUTest/TestHarness.h>
#include <coir/config.h>
#include <coir/detail/accounts.h>
#include <coir/format.h>
#include <coir/http/run.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string_view>

#include "tests/support/ask.h"
#include "tests/support/thread.h"

#if !COIR_NO_ASYNC
#include <coir/http/run_async.h>
#endif
#if COIR_TLS && !COIR_SINGLE_WORKER
#include "tests/support/tls_pair.h"
#endif

namespace http_run_test {

namespace {

using namespace coir;
using namespace coir::http;
using namespace std::chrono_literals;
using test::status_of;

// Client is a plain blocking socket, which shares nothing with the server in a build for one worker.
class Client {
 public:
  explicit Client(std::uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval patience = {.tv_sec = 60, .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    connected = connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  }
  ~Client() { hang_up(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void say(std::string_view text) { static_cast<void>(::send(fd_, text.data(), text.size(), MSG_NOSIGNAL)); }
  // hear returns what comes until `end` does, or the connection ends.
  std::string_view hear(std::string_view end) {
    std::size_t have = 0;
    while (have < sizeof heard_) {
      const ssize_t got = recv(fd_, heard_ + have, sizeof heard_ - have, 0);
      if (got <= 0) break;
      have += static_cast<std::size_t>(got);
      if (std::string_view(heard_, have).ends_with(end)) break;
    }
    return {heard_, have};
  }
  bool ask(std::string_view path = "/") {
    char request[100];
    say(coir::format(request, "GET ", path, " HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    return status_of(hear("served\n")) == 200;
  }
  // ended waits for the end, which comes with or without a reset.
  bool ended() {
    char byte;
    return recv(fd_, &byte, 1, 0) <= 0 && errno != EAGAIN;
  }
  void hang_up() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

  bool connected = false;

 private:
  int fd_;
  char heard_[4096];
};

// Handlers and clients signal each other by these.
std::atomic<int> entered;
std::atomic<bool> may_go;
std::atomic<int> hangups, stops;

// /hold stays in the handler until it may go; /read reads content.
void serve(Exchange& exchange) {
  const std::string_view path = exchange.request().path;
  if (path == "/hold") {
    entered.fetch_add(1);
    while (!may_go.load()) usleep(200);
  }
  char piece[16];
  if (path == "/read") {
    entered.fetch_add(1);
    while (exchange.read_body(piece)) {
    }
  }
  exchange.respond(200, "text/plain", "served\n");
}

ServerOptions options() {
  return {
      .handler = serve, .on_hangup = [](void*) { hangups.fetch_add(1); }, .on_stop = [](void*) { stops.fetch_add(1); }};
}

void wait_for(const std::atomic<int>& count, int number) {
  while (count.load() < number) usleep(200);
}

// send has the calling thread take the signal, as the kernel might choose. ThreadSanitizer keeps one that meets a worker asleep
// on a futex until that worker is woken.
void send(int signal) {
  pthread_kill(pthread_self(), signal);
}

// stop_server sends the signal once: a second one would cut off what still ends.
std::atomic<bool> told_to_stop;
void stop_server() {
  if (!told_to_stop.exchange(true)) send(SIGUSR1);
}

// with serves by `way` on the test's thread while `visit` is a client on another, and stops it then.
template <class Way, class Visit>
std::expected<std::size_t, Error> with(Way way, Visit visit) {
  entered = hangups = stops = 0;
  may_go = told_to_stop = false;
  static_cast<void>(catch_signals({SIGUSR1, SIGHUP}));
  // A signal that came behind the end of an earlier server is kept for whoever asks next.
  while (wait_signal({SIGUSR1, SIGHUP}, Deadline::now())) {
  }
  auto listener = TcpListener::listen(*Address::parse("127.0.0.1:0"));
  CHECK_TRUE(listener.has_value());
  const std::uint16_t port = listener->local_address().port();
  test::Thread clients([&] {
    visit(port);
    may_go = true;
    stop_server();
  });
  const auto outcome = way(std::move(*listener));
  clients.join();
  return outcome;
}

constexpr auto kRun = [](TcpListener&& listener) {
  return http::run(options(), std::move(listener), {SIGUSR1, SIGHUP});
};

}  // namespace

TEST_GROUP(HttpRun) {
  void teardown() override {
    LONGS_EQUAL(0, account::http.used());
    LONGS_EQUAL(0, account::connections.used());
  }
  test::Expectations expectations;
};

TEST(HttpRun, run_keeps_a_connection_and_ends_by_a_signal) {
  const auto lost = with(kRun, [&](std::uint16_t port) {
    Client client(port);
    expectations.expect(client.connected && client.ask() && client.ask());
    stop_server();
    expectations.expect(client.ended());
  });
  expectations.check();
  CHECK(lost.has_value() && *lost == 0);
}

TEST(HttpRun, run_serves_one_client_while_another_is_idle) {
  const auto lost = with(kRun, [&](std::uint16_t port) {
    Client idle(port);
    expectations.expect(idle.ask());
    for (int i = 0; i < 3; ++i) {
      Client other(port);
      expectations.expect(other.ask());
      if (COIR_NO_ASYNC) expectations.expect(idle.ask());
    }
    if (!COIR_NO_ASYNC) expectations.expect(idle.ended());
  });
  expectations.check();
  CHECK(lost.has_value());
}

TEST(HttpRun, run_does_not_wait_long_for_a_client_that_says_nothing) {
  const auto way = [](TcpListener&& listener) {
    ServerOptions hasty = options();
    hasty.header_timeout = 20ms;
    return http::run(hasty, std::move(listener), {SIGUSR1});
  };
  const auto lost = with(way, [&](std::uint16_t port) {
    Client silent(port);
    Client other(port);
    expectations.expect(other.ask());
  });
  expectations.check();
  CHECK(lost.has_value());
}

TEST(HttpRun, a_hangup_signal_is_told_and_does_not_stop) {
  const auto lost = with(kRun, [&](std::uint16_t port) {
    Client client(port);
    expectations.expect(client.ask());
    send(SIGHUP);
    wait_for(hangups, 1);
    expectations.expect(client.ask());
  });
  expectations.check();
  CHECK(lost.has_value());
}

#if COIR_NO_ASYNC
constexpr auto kOneThatStops = kRun;
#else
constexpr auto kOneThatStops = [](TcpListener&& listener) {
  return run_async(options(), std::move(listener), {SIGUSR1, SIGHUP});
};
#endif

TEST(HttpRun, a_stop_is_told_before_what_is_under_way_has_ended) {
  const auto lost = with(kOneThatStops, [&](std::uint16_t port) {
    Client client(port);
    client.say("POST /read HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n");
    wait_for(entered, 1);
    expectations.expect(stops == 0);
    stop_server();
    wait_for(stops, 1);
    client.say("hello");
    expectations.expect(status_of(client.hear("served\n")) == 200);
  });
  expectations.check();
  CHECK(lost.has_value() && *lost == 0);
  LONGS_EQUAL(1, stops.load());
}

TEST(HttpRun, options_that_cannot_be_served_are_an_error) {
  const auto listener = [] { return std::move(*TcpListener::listen(*Address::parse("127.0.0.1:0"))); };
  CHECK(http::run({}, listener(), {SIGUSR1}).error() == ErrorCode::invalid);
  if (!COIR_NO_ASYNC) {
    account::http.set_ceiling(1000);
    const auto refused = http::run(options(), listener(), {SIGUSR1});
    account::http.set_ceiling(SIZE_MAX);
    CHECK(refused.error() == ErrorCode::no_memory);
  }
  const auto pool = run_pool(0, options(), listener(), {SIGUSR1});
  CHECK(pool.error() == (COIR_SINGLE_WORKER ? ErrorCode::unsupported : ErrorCode::invalid));
  const auto none = run_pool(4, {}, listener(), {SIGUSR1});
  CHECK(none.error() == (COIR_SINGLE_WORKER ? ErrorCode::unsupported : ErrorCode::invalid));
}

#if !COIR_SINGLE_WORKER

namespace {
constexpr auto kPoolOfTwo = [](TcpListener&& listener) {
  return run_pool(2, options(), std::move(listener), {SIGUSR1, SIGHUP}, 60s);
};
}  // namespace

TEST(HttpRun, threads_of_a_pool_serve_at_the_same_time) {
  const auto lost = with(kPoolOfTwo, [&](std::uint16_t port) {
    Client first(port);
    Client second(port);
    first.say("GET /hold HTTP/1.1\r\nHost: localhost\r\n\r\n");
    second.say("GET /hold HTTP/1.1\r\nHost: localhost\r\n\r\n");
    wait_for(entered, 2);
    may_go = true;
    expectations.expect(status_of(first.hear("served\n")) == 200);
    expectations.expect(status_of(second.hear("served\n")) == 200);
    send(SIGHUP);
    wait_for(hangups, 1);
    expectations.expect(first.ask());
  });
  expectations.check();
  CHECK(lost.has_value() && *lost == 0);
}

TEST(HttpRun, a_connection_keeps_its_thread_until_it_ends) {
  const auto lost = with(kPoolOfTwo, [&](std::uint16_t port) {
    Client first(port);
    Client second(port);
    expectations.expect(first.ask() && second.ask());
    Client third(port);
    third.say("GET /hold HTTP/1.1\r\nHost: localhost\r\n\r\n");
    // Both threads go on with their own clients; the third has none.
    for (int i = 0; i < 20; ++i) expectations.expect(first.ask() && second.ask());
    expectations.expect(entered.load() == 0);
    may_go = true;
    first.hang_up();
    expectations.expect(status_of(third.hear("served\n")) == 200);
  });
  expectations.check();
  CHECK(lost.has_value());
}

TEST(HttpRun, a_stopping_pool_closes_what_is_idle_and_ends_what_is_not) {
  const auto lost = with(kPoolOfTwo, [&](std::uint16_t port) {
    Client idle(port);
    Client busy(port);
    expectations.expect(idle.ask());
    busy.say("GET /hold HTTP/1.1\r\nHost: localhost\r\n\r\n");
    wait_for(entered, 1);
    stop_server();
    expectations.expect(idle.ended());
    expectations.expect(stops == 1);
    may_go = true;
    expectations.expect(status_of(busy.hear("served\n")) == 200);
    expectations.expect(busy.ended());
  });
  expectations.check();
  CHECK(lost.has_value() && *lost == 0);
  LONGS_EQUAL(1, stops.load());
}

TEST(HttpRun, a_handler_that_a_pool_does_not_end_in_time_is_cut_off) {
  const auto way = [](TcpListener&& listener) { return run_pool(2, options(), std::move(listener), {SIGUSR1}, 20ms); };
  const auto lost = with(way, [&](std::uint16_t port) {
    Client client(port);
    client.say("POST /read HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n");
    wait_for(entered, 1);
    stop_server();
    expectations.expect(client.hear("never").empty());
  });
  expectations.check();
  CHECK(lost.has_value() && *lost == 1);
}

#if COIR_TLS

TEST(HttpRun, threads_serve_over_tls) {
  static TlsContextSlot slot(test::authority().server());
  const auto alone = [](TcpListener&& listener) {
    return http::run(options(), std::move(listener), {SIGUSR1}, 10s, &slot);
  };
  const auto pool = [](TcpListener&& listener) {
    return run_pool(2, options(), std::move(listener), {SIGUSR1}, 10s, &slot);
  };
  const auto visit = [&](std::uint16_t port) {
    // A client that says nothing of its handshake, and one that says what is none.
    Client bad(port);
    bad.say("GET / HTTP/1.1\r\n\r\n");
    expectations.expect(!bad.hear("never").starts_with("HTTP"));
    bad.hang_up();
    for (int i = 0; i < 2; ++i) {
      auto client = connect_tls("127.0.0.1", port, test::authority().client(), test::Asker::soon());
      expectations.expect(client.has_value());
      if (!client) return;
      char heard[400];
      for (int request = 0; request < 3; ++request) {
        expectations.expect(
            client->write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", test::Asker::soon()).has_value());
        const auto got = client->read(heard, test::Asker::soon());
        expectations.expect(got && status_of({heard, *got}) == 200);
      }
    }
  };
  for (int i = 0; i < 2; ++i) {
    const auto lost = i == 0 ? with(alone, visit) : with(pool, visit);
    expectations.check();
    CHECK(lost.has_value() && *lost == 0);
  }
}

#endif

#endif

#if !COIR_NO_ASYNC

TEST(HttpRun, fibers_serve_the_same_handler) {
  const auto way = [](TcpListener&& listener) { return run_async(options(), std::move(listener), {SIGUSR1, SIGHUP}); };
  const auto lost = with(way, [&](std::uint16_t port) {
    Client first(port);
    Client second(port);
    expectations.expect(first.ask() && second.ask() && first.ask());
    send(SIGHUP);
    wait_for(hangups, 1);
    stop_server();
    expectations.expect(first.ended() && second.ended());
  });
  expectations.check();
  CHECK(lost.has_value() && *lost == 0);
  // A handler that does not end in time is cut off, and the server is destroyed after it.
  const auto hasty = [](TcpListener&& listener) { return run_async(options(), std::move(listener), {SIGUSR1}, 20ms); };
  const auto cut_off = with(hasty, [&](std::uint16_t port) {
    Client client(port);
    client.say("POST /read HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n");
    wait_for(entered, 1);
    stop_server();
    expectations.expect(client.hear("never").empty());
  });
  expectations.check();
  CHECK(cut_off.has_value() && *cut_off == 1);
  CHECK(run_async({}, std::move(*TcpListener::listen(*Address::parse("127.0.0.1:0"))), {SIGUSR1}).error() ==
        ErrorCode::invalid);
  // A signal that there is not would never end the server.
  CHECK(run_async(options(), std::move(*TcpListener::listen(*Address::parse("127.0.0.1:0"))), {99}).error() ==
        ErrorCode::invalid);
}

#endif

}  // namespace http_run_test
