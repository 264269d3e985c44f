#pragma once

#include <CppUTest/TestHarness.h>
#include <coir/config.h>
#include <coir/detail/accounts.h>
#include <coir/http/files.h>
#include <coir/http/metrics.h>
#include <coir/http/server.h>
#include <coir/ledger.h>
#include <coir/pressure.h>
#include <coir/program.h>
#include <coir/signal.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <optional>
#include <string_view>

#include "net/src/base/buffer_pool.h"
#include "tests/support/faults.h"
#include "tests/support/folder.h"
#include "tests/support/until.h"
#include "tests/unit/http/faults_client.h"

namespace coir::test {

using namespace std::chrono_literals;

inline constexpr std::size_t kLargeBytes = 400'000;
inline char large[kLargeBytes];

// Site is what the server answers from.
struct Site {
  std::optional<http::FileTree> files;
  http::Metrics metrics;
  http::Server* server = nullptr;
  bool (*also)(http::Exchange&) = nullptr;  // answers what it knows
};

// answer_left gives back what is kept for speed, and says what the ledger holds then: with one worker none but the
// server itself may touch that.
inline void answer_left(http::Exchange& exchange) {
  static_cast<void>(Pressure::make_room(account::connections, std::size_t{1} << 30));
  char text[128];
  char* at = text;
  for (const std::size_t used : {account::connections.used(), account::stacks.used(), account::files.used(),
                                 account::http.used(), account::buffers.used() - Buffer::spare_bytes()}) {
    at = http::write_decimal(at, used);
    *at++ = ' ';
  }
  exchange.close_after();
  exchange.respond(200, "text/plain", {text, at});
}

// answer serves files, /metrics, /chunks (much, in pieces larger than any buffer) and what is sent to it.
inline void answer(Site& site, http::Exchange& exchange) {
  if (exchange.request().path == "/left") return answer_left(exchange);
  if (site.also != nullptr && site.also(exchange)) return;
  if (exchange.request().path == "/metrics") return site.metrics(exchange);
  if (exchange.request().path == "/chunks") {
    exchange.start(200);
    if (!exchange.begin_chunked()) return;
    for (int i = 0; i < 4; ++i) {
      if (!exchange.write({large, kLargeBytes / 4})) return;
    }
    return;
  }
  if (exchange.request().method == http::Method::post) {
    char piece[512];
    std::uint64_t total = 0;
    for (;;) {
      auto got = exchange.read_body(piece);
      if (!got) break;
      total += *got;
    }
    char text[24];
    return exchange.respond(200, "text/plain", {text, http::write_decimal(text, total)});
  }
  site.files->serve(exchange);
}

struct Setting {
  unsigned workers;
  bool ppoll;
};

// FaultyServer is the group of tests of a server, with a thread of its own, whose calls fail. The test's thread is its
// client, and is spared.
class FaultyServer : public Utest {
 protected:
  Folder root;
  Site site;
  alignas(http::Server) char place[sizeof(http::Server)];
  std::uint16_t port = 0;
  int unsent_bytes = 0;  // ListenOptions::unsent_bytes
  pthread_t thread = {};
  Setting setting = {};
  std::atomic<bool> running = false;
  std::atomic<bool> ended = false;
  std::atomic<bool> clean_end = false;
  const char* stage = "";
  Fault fault = {};

  void setup() override {
    spare_this_thread();
    memset(large, 'x', sizeof large);
    CHECK_EQUAL(0, ::mkdir(root.at("dir"), 0700));
    put(root.at("small"), {large, 100});
    put(root.at("large"), {large, kLargeBytes});
    put(root.at("dir/index.html"), {large, 100});
    CHECK(catch_signals({SIGUSR1}).has_value());
    ::signal(SIGPIPE, SIG_IGN);
    Ledger::total().set_ceiling(std::size_t{64} << 20);
  }

  void teardown() override {
    withdraw();
    if (running) end();
    Ledger::total().set_ceiling(SIZE_MAX);
  }

  // say makes the sentence that a broken promise is told by.
  const char* say(const char* wrong) const {
    static char text[300];
    snprintf(text, sizeof text, "%s %s, %s of number %u (errno %d); %u workers, %s", stage, wrong, name_of(fault.call),
             fault.nth, fault.error, setting.workers, setting.ppoll ? "ppoll" : "epoll");
    return text;
  }
  void require(bool right, const char* wrong) const {
    if (!right) FAIL(say(wrong));
  }

  static void* run(void* self) {
    auto& test = *static_cast<FaultyServer*>(self);
    const auto body = [&test] {
      if (!test.site.server->start()) return;
      test.running = true;
      test.clean_end = test.site.server->serve_until({SIGUSR1}, 20s) == 0;
    };
#if COIR_NO_ASYNC
    body();
#else
    static_cast<void>(
        run_until_idle({.workers = test.setting.workers, .force_ppoll = test.setting.ppoll, .hot_stacks = 1}, body));
#endif
    test.ended = true;
    return nullptr;
  }

  // begin starts a server; false: it could not be, and nothing of it is left. Faults also hit the calls
  // that it makes before it has a thread of its own.
  bool begin() {
    running = ended = false;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 1 << 20);
    auto made = [this] {
      pthread_t maker;
      CHECK_EQUAL(0, pthread_create(&maker, nullptr, &make, this));
      pthread_join(maker, nullptr);
      return site.server != nullptr;
    }();
    if (made) {
      CHECK_EQUAL(0, pthread_create(&thread, &attributes, &run, this));
      until([this] { return running || ended; });
      if (!running) {
        pthread_join(thread, nullptr);
        drop();
        made = false;
      }
    }
    pthread_attr_destroy(&attributes);
    if (!made) release();
    return made;
  }

  static void* make(void* self) {
    auto& test = *static_cast<FaultyServer*>(self);
    // Without mmap a cache keeps what it has, and hides the calls behind it.
    http::FileTree files(test.root.path(), {.cached_files = kFibers ? 64u : 0u});
    if (!files.opened()) return nullptr;
    http::ServerOptions options;
    options.handler = [&test](http::Exchange& exchange) { answer(test.site, exchange); };
    options.max_connections = 16;
    options.max_active = kFibers ? 4 : 1;
    options.header_timeout = 20s;
    options.idle_timeout = 20s;
    // No client speaks TLS. After a failure the server tries again in a fourth of this time.
    options.handshake_timeout = 40ms;
    if (!test.prepare()) return nullptr;
    auto server = http::Server::create(options);
    if (!server) return nullptr;
    auto listener = TcpListener::listen(*Address::parse("127.0.0.1:0"), {.unsent_bytes = test.unsent_bytes});
    if (!listener) return nullptr;
    test.port = listener->local_address().port();
    if (!server->add(std::move(*listener))) return nullptr;
    test.site.metrics = {};
    test.site.metrics.add(test.site.files.emplace(std::move(files)));
    test.site.server = new (test.place) http::Server(std::move(*server));
    return nullptr;
  }

  void drop() {
    site.server->http::Server::~Server();
    site.server = nullptr;
    site.files.reset();
    release();
  }

  // prepare makes what the server's streams are kept by, and release ends it behind the server.
  virtual bool prepare() { return true; }
  virtual void release() {}

  void end() {
    kill(getpid(), SIGUSR1);
    pthread_join(thread, nullptr);
    running = false;
    drop();
  }

  // quiet waits until the server holds no connection.
  bool quiet() const {
    const Deadline deadline = Deadline::after(std::chrono::seconds(kPatienceSeconds));
    return until([this] { return site.server->gauges().open == 0; }, deadline);
  }

  // Left is what the server holds while it serves only the one that asks, its caches given back.
  struct Left {
    unsigned long connections = 0, stacks = 0, files = 0, http = 0, buffers = 0;
    int descriptors = 0;
    bool operator==(const Left&) const = default;
  };
  static Left least_of(const Left& one, const Left& other) {
    return {std::min(one.connections, other.connections),
            std::min(one.stacks, other.stacks),
            std::min(one.files, other.files),
            std::min(one.http, other.http),
            std::min(one.buffers, other.buffers),
            std::min(one.descriptors, other.descriptors)};
  }
  Left left() const {
    constexpr Scenario kAsk = {"the question what is left", "GET /left HTTP/1.1\r\nHost: t\r\n\r\n", 200, 0, false};
    Left now;
    Client client(port);
    require(client.connected(), "keeps the question from being let in");
    const Client::Heard heard = client.ask(kAsk);
    if (heard != Client::Heard::answer) client.tell(heard);
    require(heard == Client::Heard::answer, "keeps the question from an answer");
    const std::string_view text = client.text();
    const char* const body = text.data() + text.find("\r\n\r\n") + 4;
    CHECK_EQUAL(
        5, sscanf(body, "%lu %lu %lu %lu %lu", &now.connections, &now.stacks, &now.files, &now.http, &now.buffers));
    now.descriptors = count_fds();
    return now;
  }
  // is_as_before waits until no more is left than before. Less may be left: on a busy machine another worker may still have
  // held memory when `before` was taken. Memory that is refunded twice shows at the end, where nothing may be left.
  bool is_as_before(const Left& before) const {
    const Deadline deadline = Deadline::after(std::chrono::seconds(kPatienceSeconds));
    Left now;
    if (until([&] { return least_of(now = left(), before) == now; }, deadline)) return true;
    const Left both[] = {before, now};
    for (const Left& each : both) {
      fprintf(stderr, "%s: connections %lu, stacks %lu, files %lu, http %lu, buffers %lu, descriptors %d\n",
              &each == &both[1] ? "left" : "before", each.connections, each.stacks, each.files, each.http, each.buffers,
              each.descriptors);
    }
    return false;
  }
  // rest is the least that is left: other workers give back what they have in their own time.
  Left rest() const {
    Left least = left();
    for (int same = 0; same < 30; ++same) {
      usleep(1000);
      const Left lower = least_of(left(), least);
      if (lower != least) same = 0;
      least = lower;
    }
    return least;
  }

  // visit asks twice on one connection. A client that was refused asks no more.
  void visit(const Scenario& scenario) {
    Client client(port);
    require(client.connected(), "is not let in");
    for (int turn = 0; turn < (scenario.until_close ? 1 : 2); ++turn) {
      const Client::Heard heard = client.ask(scenario);
      require(heard != Client::Heard::silence, "is not answered");
      require(heard != Client::Heard::false_whole, "gets a wrong answer that looks whole");
      if (heard != Client::Heard::answer && failures() == 0) client.tell(heard);
      require(heard == Client::Heard::answer || failures() != 0, "gets no answer though nothing failed");
      if (heard != Client::Heard::answer) return;
    }
  }

  static void nothing_is_left() {
    LONGS_EQUAL(0, account::connections.used());
    LONGS_EQUAL(0, account::http.used());
    // A thread of the pool ends after a second without work; where there is one worker its charge is given back on demand.
    until(
        [] {
          if (account::stacks.used() != 0) Pressure::make_room(account::stacks, SIZE_MAX);
          return account::stacks.used() == 0;
        },
        Deadline::after(std::chrono::seconds(60)));
    LONGS_EQUAL(0, account::stacks.used());
    LONGS_EQUAL(0, account::files.used());
  }
};

}  // namespace coir::test
