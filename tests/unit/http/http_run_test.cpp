// The three modes of a server with one handler: serial, on threads, on fibers.

#include <CppUTest/TestHarness.h>
#include <coir/config.h>
#include <coir/detail/accounts.h>
#include <coir/format.h>
#include <coir/http/server.h>
#include <coir/program.h>
#include <coir/signal.h>
#include <coir/sleep.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string_view>

#include "tests/support/ask.h"
#include "tests/support/thread.h"

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
std::atomic<int> hangups, stops, cancelled_sleeps, at_once, at_once_most;

// /hold stays in the handler until it may go; /read reads content.
void answer(Exchange& exchange) {
  const std::string_view path = exchange.request().path;
  if (path == "/hold") {
    entered.fetch_add(1);
    while (!may_go.load()) usleep(200);
  }
  if (path == "/sleep") {
    entered.fetch_add(1);
    if (const auto slept = coir::sleep(1h); !slept && slept.error() == ErrorCode::cancelled)
      cancelled_sleeps.fetch_add(1);
  }
  if (path == "/nap") {
    at_once_most = std::max(at_once_most.load(), ++at_once);
    static_cast<void>(coir::sleep(60ms));
    --at_once;
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
  return {.handler = answer, .on_hangup = [] { hangups.fetch_add(1); }, .on_stop = [] { stops.fetch_add(1); }};
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
  entered = hangups = stops = cancelled_sleeps = 0;
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

// serve serves until SIGUSR1, by two threads where it is by threads, and returns how many connections were cut off.
std::expected<std::size_t, Error> serve(Mode mode, TcpListener&& listener, ServerOptions by = options(),
                                        std::chrono::milliseconds drain_timeout = 60s, TlsContextSlot* tls = nullptr) {
  if (mode == Mode::threads) by.max_active = 2;
  auto server = Server::create(by, mode);
  if (!server) return std::unexpected(server.error());
  if (auto added = server->add(std::move(listener), tls); !added) return std::unexpected(added.error());
  std::size_t lost = 0;
  const int status = run_program([&] {
    if (!server->start()) return 1;
    lost = server->serve_until({SIGUSR1, SIGHUP}, drain_timeout);
    return 0;
  });
  if (status != 0) return std::unexpected(Error{ErrorCode::system});
  return lost;
}

constexpr auto kSerial = [](TcpListener&& listener) { return serve(Mode::serial, std::move(listener)); };

}  // namespace

TEST_GROUP(HttpRun) {
  void teardown() override {
    LONGS_EQUAL(0, account::http.used());
    LONGS_EQUAL(0, account::connections.used());
  }
  test::Expectations expectations;
};

TEST(HttpRun, a_serial_server_keeps_a_connection_and_ends_by_a_signal) {
  const auto lost = with(kSerial, [&](std::uint16_t port) {
    Client client(port);
    expectations.expect(client.connected && client.ask() && client.ask());
    stop_server();
    expectations.expect(client.ended());
  });
  expectations.check();
  CHECK(lost.has_value() && *lost == 0);
}

TEST(HttpRun, a_serial_server_serves_one_client_while_another_is_idle) {
  const auto lost = with(kSerial, [&](std::uint16_t port) {
    Client idle(port);
    expectations.expect(idle.ask());
    for (int i = 0; i < 3; ++i) {
      Client other(port);
      expectations.expect(other.ask());
      expectations.expect(idle.ask());
    }
  });
  expectations.check();
  CHECK(lost.has_value());
}

TEST(HttpRun, a_serial_server_begins_no_request_while_a_handler_waits) {
  at_once_most = 0;
  const auto lost = with(kSerial, [&](std::uint16_t port) {
    Client first(port);
    Client second(port);
    first.say("GET /nap HTTP/1.1\r\nHost: localhost\r\n\r\n");
    second.say("GET /nap HTTP/1.1\r\nHost: localhost\r\n\r\n");
    expectations.expect(status_of(first.hear("served\n")) == 200 && status_of(second.hear("served\n")) == 200);
  });
  expectations.check();
  CHECK(lost.has_value());
  LONGS_EQUAL(1, at_once_most.load());
}

TEST(HttpRun, a_serial_server_does_not_wait_long_for_a_client_that_says_nothing) {
  const auto way = [](TcpListener&& listener) {
    ServerOptions hasty = options();
    hasty.header_timeout = 20ms;
    return serve(Mode::serial, std::move(listener), hasty);
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
  const auto lost = with(kSerial, [&](std::uint16_t port) {
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
constexpr auto kOneThatStops = kSerial;
#else
constexpr auto kOneThatStops = [](TcpListener&& listener) { return serve(Mode::fibers, std::move(listener)); };
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
  CHECK(Server::create({}).error() == ErrorCode::invalid);
  CHECK(Server::create({}, Mode::serial).error() == ErrorCode::invalid);
  ServerOptions many = options();
  many.max_active = 5000;
  const auto threads = Server::create(many, Mode::threads);
  CHECK(threads.error() == (coir::kManyWorkers ? ErrorCode::invalid : ErrorCode::unsupported));
  if (!kFibers) CHECK(Server::create(options(), Mode::fibers).error() == ErrorCode::unsupported);
}

#if !COIR_SINGLE_WORKER

namespace {
constexpr auto kPoolOfTwo = [](TcpListener&& listener) { return serve(Mode::threads, std::move(listener)); };
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

TEST(HttpRun, a_connection_between_two_requests_keeps_no_thread) {
  const auto lost = with(kPoolOfTwo, [&](std::uint16_t port) {
    Client first(port);
    Client second(port);
    expectations.expect(first.ask() && second.ask());
    Client third(port);
    Client fourth(port);
    third.say("GET /hold HTTP/1.1\r\nHost: localhost\r\n\r\n");
    fourth.say("GET /hold HTTP/1.1\r\nHost: localhost\r\n\r\n");
    wait_for(entered, 2);
    // Both threads are blocked: a request waits for one of them.
    first.say("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    may_go = true;
    expectations.expect(status_of(first.hear("served\n")) == 200);
    expectations.expect(status_of(third.hear("served\n")) == 200);
    expectations.expect(status_of(fourth.hear("served\n")) == 200);
  });
  expectations.check();
  CHECK(lost.has_value());
}

TEST(HttpRun, a_handler_on_a_thread_does_not_outlive_its_client) {
  const auto lost = with(kPoolOfTwo, [&](std::uint16_t port) {
    for (int i = 0; i < 3; ++i) {
      Client client(port);
      client.say("GET /sleep HTTP/1.1\r\nHost: localhost\r\n\r\n");
      wait_for(entered, i + 1);
      client.hang_up();
      wait_for(cancelled_sleeps, i + 1);
    }
  });
  expectations.check();
  CHECK(lost.has_value() && *lost == 0);
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
  const auto way = [](TcpListener&& listener) { return serve(Mode::threads, std::move(listener), options(), 20ms); };
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
    return serve(Mode::serial, std::move(listener), options(), 10s, &slot);
  };
  const auto pool = [](TcpListener&& listener) {
    return serve(Mode::threads, std::move(listener), options(), 10s, &slot);
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
  const auto way = [](TcpListener&& listener) { return serve(Mode::fibers, std::move(listener)); };
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
  const auto hasty = [](TcpListener&& listener) { return serve(Mode::fibers, std::move(listener), options(), 20ms); };
  const auto cut_off = with(hasty, [&](std::uint16_t port) {
    Client client(port);
    client.say("POST /read HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n");
    wait_for(entered, 1);
    stop_server();
    expectations.expect(client.hear("never").empty());
  });
  expectations.check();
  CHECK(cut_off.has_value() && *cut_off == 1);
}

#endif

}  // namespace http_run_test
