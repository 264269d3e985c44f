// Want of memory or descriptors at any one point of a request: the n-th charge to the ledger is refused, or the n-th
// call to the kernel of a kind fails, for n = 1, 2, 3 ... until a request meets none. Each time the client gets its
// answer, or a refusal that cannot be taken for one; the next is served as if nothing had been; nothing is left over.

#include <CppUTest/TestHarness.h>
#include <arpa/inet.h>
#include <coir/http/files.h>
#include <coir/http/metrics.h>
#include <coir/http/server.h>
#include <coir/ledger.h>
#include <coir/pressure.h>
#include <coir/program.h>
#include <coir/signal.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <initializer_list>
#include <new>
#include <optional>
#include <span>
#include <string_view>

#include "tests/support/faults.h"
#include "tests/support/scale.h"

using namespace std::chrono_literals;
using namespace coir::test;
using coir::Account;
using coir::Address;
using coir::Deadline;
using coir::TcpListener;
using coir::http::Exchange;
using coir::http::FileTree;
using coir::http::Method;
using coir::http::Server;
using coir::http::ServerOptions;

namespace {

constexpr std::size_t kLargeBytes = 400'000;
constexpr int kPatienceSeconds = 60;

char large[kLargeBytes];

struct Site {
  std::optional<FileTree> files;
  Server* server = nullptr;
};

// answer_left gives back what is kept for speed, and says what the ledger holds then: with one worker none but the
// server itself may touch that.
void answer_left(Exchange& exchange) {
  static_cast<void>(coir::Pressure::make_room(coir::account::connections, std::size_t{1} << 30));
  char text[128];
  char* at = text;
  for (const Account* account : {&coir::account::connections, &coir::account::stacks, &coir::account::files}) {
    at = coir::http::write_decimal(at, account->used());
    *at++ = ' ';
  }
  exchange.close_after();
  exchange.respond(200, "text/plain", {text, at});
}

// answer serves files, /metrics, /chunks (much, in pieces larger than any buffer) and what is sent to it.
void answer(Exchange& exchange) {
  auto& site = exchange.context<Site>();
  if (exchange.request().path == "/left") return answer_left(exchange);
  if (exchange.request().path == "/metrics") return write_metrics(exchange, *site.server, &*site.files);
  if (exchange.request().path == "/chunks") {
    exchange.start(200);
    if (!exchange.begin_chunked()) return;
    for (int i = 0; i < 4; ++i) {
      if (!exchange.write({large, kLargeBytes / 4})) return;
    }
    return;
  }
  if (exchange.request().method == Method::post) {
    char piece[512];
    std::uint64_t total = 0;
    for (;;) {
      auto got = exchange.read_body(piece);
      if (!got) break;
      total += *got;
    }
    char text[24];
    return exchange.respond(200, "text/plain", {text, coir::http::write_decimal(text, total)});
  }
  site.files->serve(exchange);
}

struct Scenario {
  const char* name;
  std::string_view request;
  int status;
  std::size_t body_bytes;  // 0: whatever it is
  bool until_close = false;
};

constexpr Scenario kScenarios[] = {
    {"a small file", "GET /small HTTP/1.1\r\nHost: t\r\n\r\n", 200, 100},
    {"a large file", "GET /large HTTP/1.1\r\nHost: t\r\n\r\n", 200, kLargeBytes},
    {"a part of it", "GET /large HTTP/1.1\r\nHost: t\r\nRange: bytes=100-200099\r\n\r\n", 206, 200'000},
    {"a directory", "GET /dir/ HTTP/1.1\r\nHost: t\r\n\r\n", 200, 100},
    {"a file that is not there", "GET /none HTTP/1.1\r\nHost: t\r\n\r\n", 404, 14},
    {"content in chunks",
     "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n3\r\nyou\r\n0\r\n\r\n", 200, 1},
    {"an answer in chunks", "GET /chunks HTTP/1.1\r\nHost: t\r\n\r\n", 200, kLargeBytes},
    {"an answer that ends with the connection", "GET /chunks HTTP/1.0\r\n\r\n", 200, kLargeBytes, true},
    {"the metrics", "GET /metrics HTTP/1.1\r\nHost: t\r\n\r\n", 200, 0},
};

// Client is a blocking socket, so that nothing of coir is on this side.
class Client {
 public:
  explicit Client(std::uint16_t port, int patience_ms = kPatienceSeconds * 1000)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval patience = {.tv_sec = patience_ms / 1000, .tv_usec = patience_ms % 1000 * 1000};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() { ::close(fd_); }

  bool connected() const { return connected_; }

  enum class Heard { answer, refusal, nothing, part, silence, false_whole };

  // ask sends a request and says what came of it.
  Heard ask(const Scenario& scenario) {
    have_ = 0;
    end_ = reset_ = silent_ = false;
    // What fails shows in the answer.
    static_cast<void>(!::send(fd_, scenario.request.data(), scenario.request.size(), MSG_NOSIGNAL));
    std::size_t head;
    while ((head = text().find("\r\n\r\n")) == std::string_view::npos && more()) {
    }
    if (silent_) return Heard::silence;
    if (have_ == 0) return Heard::nothing;
    if (head == std::string_view::npos) return Heard::part;
    head += 4;
    const std::string_view fields = text().substr(0, head);
    const int status = atoi(heard_ + 9);
    std::size_t bytes = 0;
    if (const std::size_t at = fields.find("Content-Length: "); at != fields.npos) {
      const std::size_t length = strtoul(heard_ + at + 16, nullptr, 10);
      while (have_ < head + length && more()) {
      }
      if (silent_) return Heard::silence;
      if (have_ < head + length) return Heard::part;
      bytes = length;
      if (have_ > head + length) return Heard::false_whole;
    } else if (fields.find("Transfer-Encoding: chunked") != fields.npos) {
      while (!text().ends_with("\r\n0\r\n\r\n") && more()) {
      }
      if (silent_) return Heard::silence;
      if (!text().ends_with("\r\n0\r\n\r\n")) return Heard::part;
      bytes = decoded(head);
    } else {
      while (more()) {
      }
      if (silent_) return Heard::silence;
      bytes = have_ - head;
      // Here the end of the connection is all that tells a whole answer from a part.
      if (reset_) return Heard::part;
    }
    if (status == scenario.status)
      return scenario.body_bytes == 0 || bytes == scenario.body_bytes ? Heard::answer : Heard::false_whole;
    return status == 503 || status == 500 ? Heard::refusal : Heard::false_whole;
  }

  std::string_view text() const { return {heard_, have_}; }

 private:
  bool more() {
    if (end_) return false;
    const ssize_t got = ::read(fd_, heard_ + have_, sizeof heard_ - have_ - 1);
    if (got > 0) {
      have_ += static_cast<std::size_t>(got);
      heard_[have_] = '\0';
      return true;
    }
    end_ = true;
    reset_ = got < 0 && errno != EAGAIN;
    silent_ = got < 0 && errno == EAGAIN;
    return false;
  }

  // decoded is how many bytes the chunks from `at` hold.
  std::size_t decoded(std::size_t at) const {
    std::size_t total = 0;
    while (at < have_) {
      char* end = nullptr;
      const std::size_t size = strtoul(heard_ + at, &end, 16);
      if (size == 0) break;
      total += size;
      at = static_cast<std::size_t>(end - heard_) + 2 + size + 2;
    }
    return total;
  }

  int fd_;
  bool connected_ = false, end_ = false, reset_ = false, silent_ = false;
  std::size_t have_ = 0;
  static char heard_[kLargeBytes * 2];
};
char Client::heard_[kLargeBytes * 2];

int open_descriptors() {
  int count = 0;
  for (int fd = 0; fd < 512; ++fd) count += ::fcntl(fd, F_GETFD) >= 0;
  return count;
}

struct Setting {
  unsigned workers;
  bool ppoll;
};
constexpr Setting kSettings[] = {{2, false}, {1, true}, {1, false}, {2, true}};
// Without fibers there is one. The first two meet every line of code.
constexpr std::size_t kSettingsTried =
    !coir::kFibers ? 1 : scaled({.plain = 4, .address_sanitized = 2, .thread_sanitized = 2, .emulated = 1});

struct Kind {
  Call call;
  int error;
};
constexpr Kind kKinds[] = {
    {Call::charge, 0},         {Call::accept4, EMFILE},   {Call::accept4, ENOBUFS}, {Call::accept4, ENOMEM},
    {Call::epoll_ctl, ENOMEM}, {Call::epoll_ctl, ENOSPC}, {Call::eventfd, EMFILE},  {Call::epoll_create1, EMFILE},
    {Call::fstat, ENOMEM},     {Call::madvise, ENOSYS},   {Call::mmap, ENOMEM},     {Call::mprotect, ENOMEM},
    {Call::open, EMFILE},      {Call::openat, ENFILE},    {Call::openat2, EMFILE},  {Call::openat2, ENOMEM},
    {Call::poll, ENOMEM},      {Call::ppoll, ENOMEM},     {Call::pread, ENOMEM},    {Call::recv, ENOMEM},
    {Call::send, ENOBUFS},     {Call::sendfile, ENOMEM},  {Call::sendmsg, ENOMEM},  {Call::pthread_create, EAGAIN},
};

}  // namespace

TEST_GROUP(HttpFaults) {
  char root[64] = "/tmp/coir-faults.XXXXXX";
  Site site;
  alignas(Server) char place[sizeof(Server)];
  std::uint16_t port = 0;
  pthread_t thread = {};
  Setting setting = {};
  std::atomic<bool> running = false;
  std::atomic<bool> ended = false;
  std::atomic<bool> clean_end = false;
  const char* stage = "";
  Fault fault = {};
  unsigned strikes[kCalls] = {};

  static void write_file(const char* folder, const char* name, std::size_t bytes) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const int fd = ::open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK_EQUAL(static_cast<ssize_t>(bytes), ::write(fd, large, bytes));
    ::close(fd);
  }

  void setup() override {
    spare_this_thread();
    memset(large, 'x', sizeof large);
    CHECK(mkdtemp(root) != nullptr);
    char folder[80];
    snprintf(folder, sizeof folder, "%s/dir", root);
    CHECK_EQUAL(0, ::mkdir(folder, 0700));
    write_file(root, "small", 100);
    write_file(root, "large", kLargeBytes);
    write_file(folder, "index.html", 100);
    CHECK(coir::catch_signals({SIGUSR1}).has_value());
    ::signal(SIGPIPE, SIG_IGN);
    coir::Ledger::total().set_ceiling(std::size_t{64} << 20);
  }

  void teardown() override {
    withdraw();
    if (running) end();
    coir::Ledger::total().set_ceiling(SIZE_MAX);
    for (const char* name : {"small", "large", "dir/index.html", "dir", ""}) {
      char path[128];
      snprintf(path, sizeof path, "%s/%s", root, name);
      ::remove(path);
    }
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
    auto& test = *static_cast<TEST_GROUP_CppUTestGroupHttpFaults*>(self);
    const auto body = [&test] {
      if (!test.site.server->start()) return;
      test.running = true;
      test.clean_end = test.site.server->serve_until({SIGUSR1}, 20s) == 0;
    };
#if defined(COIR_NO_ASYNC) && COIR_NO_ASYNC
    body();
#else
    static_cast<void>(coir::run_until_idle(
        {.workers = test.setting.workers, .force_ppoll = test.setting.ppoll, .hot_stacks = 1}, body));
#endif
    test.ended = true;
    return nullptr;
  }

  // begin starts a server; false: it could not be, and nothing of it is left. What it does before it has a thread of
  // its own is not spared either.
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
      while (!running && !ended) usleep(200);
      if (!running) {
        pthread_join(thread, nullptr);
        drop();
        made = false;
      }
    }
    pthread_attr_destroy(&attributes);
    return made;
  }

  static void* make(void* self) {
    auto& test = *static_cast<TEST_GROUP_CppUTestGroupHttpFaults*>(self);
    // Without mmap a cache keeps what it has, and hides the calls behind it.
    auto files = FileTree::open(test.root, {.cached_files = coir::kFibers ? 64u : 0u});
    if (!files) return nullptr;
    ServerOptions options;
    options.handler = answer;
    options.context = &test.site;
    options.max_connections = 16;
    options.max_active = coir::kFibers ? 4 : 1;
    options.header_timeout = 1s;
    options.idle_timeout = 2s;  // a fourth of which is how soon it tries again what could not be had
    auto server = Server::create(options);
    if (!server) return nullptr;
    auto listener = TcpListener::listen(*Address::parse("127.0.0.1:0"));
    if (!listener) return nullptr;
    test.port = listener->local_address().port();
    if (!server->add(std::move(*listener))) return nullptr;
    test.site.files.emplace(std::move(*files));
    test.site.server = new (test.place) Server(std::move(*server));
    return nullptr;
  }

  void drop() {
    site.server->~Server();
    site.server = nullptr;
    site.files.reset();
  }

  void end() {
    kill(getpid(), SIGUSR1);
    pthread_join(thread, nullptr);
    running = false;
    drop();
  }

  // quiet waits until the server holds no connection.
  bool quiet() const {
    const Deadline deadline = Deadline::after(std::chrono::seconds(kPatienceSeconds));
    while (site.server->gauges().open != 0) {
      if (deadline.passed()) return false;
      usleep(500);
    }
    return true;
  }

  // Left is what the server holds while it serves only the one that asks, its caches given back.
  struct Left {
    unsigned long connections = 0, stacks = 0, files = 0;
    int descriptors = 0;
    bool operator==(const Left&) const = default;
  };
  Left left() const {
    constexpr Scenario kAsk = {"the question what is left", "GET /left HTTP/1.1\r\nHost: t\r\n\r\n", 200, 0, false};
    Left now;
    Client client(port);
    require(client.connected() && client.ask(kAsk) == Client::Heard::answer, "keeps the question from an answer");
    const std::string_view text = client.text();
    const char* const body = text.data() + text.find("\r\n\r\n") + 4;
    CHECK_EQUAL(3, sscanf(body, "%lu %lu %lu", &now.connections, &now.stacks, &now.files));
    now.descriptors = open_descriptors();
    return now;
  }
  // settled waits until it is as it was.
  bool settled(const Left& before) const {
    const Deadline deadline = Deadline::after(std::chrono::seconds(kPatienceSeconds));
    while (left() != before) {
      if (deadline.passed()) return false;
      usleep(500);
    }
    return true;
  }
  // Other workers give back what they have in their own time.
  Left rest() const {
    Left now = left();
    for (int same = 0; same < 20;) {
      usleep(1000);
      const Left next = left();
      same = next == now ? same + 1 : 0;
      now = next;
    }
    return now;
  }

  // visit asks twice on one connection. Whoever was refused asks no more.
  void visit(const Scenario& scenario) {
    Client client(port);
    require(client.connected(), "is not let in");
    for (int turn = 0; turn < (scenario.until_close ? 1 : 2); ++turn) {
      const Client::Heard heard = client.ask(scenario);
      require(heard != Client::Heard::silence, "is not answered");
      require(heard != Client::Heard::false_whole, "gets a wrong answer that looks whole");
      require(heard == Client::Heard::answer || struck() != 0, "gets no answer though nothing failed");
      if (heard != Client::Heard::answer) return;
    }
  }

  // try_every lets each call of a kind fail once while one client is served.
  void try_every(const Kind& kind, const Scenario& scenario, const Left& before, bool lasting) {
    for (unsigned nth = 1;; ++nth) {
      fault = {.call = kind.call, .error = kind.error, .nth = nth, .lasting = lasting};
      stage = scenario.name;
      inject(fault);
      visit(scenario);
      require(lasting || quiet(), "stays connected");
      const unsigned failed = withdraw();
      strikes[static_cast<unsigned>(kind.call)] += failed;
      require(quiet(), "stays connected");
      if (failed != 0) {
        visit(scenario);
        require(quiet(), "stays connected afterwards");
      }
      require(settled(before), "leaves something behind");
      if (failed == 0) return;
      require(nth < 1000, "never comes to an end");
    }
  }

  // within runs the body with a server, for each of the settings.
  template <class Body>
  void within(Body body) {
    for (const Setting& each : std::span(kSettings).first(kSettingsTried)) {
      setting = each;
      fault = {};
      CHECK(begin());
      for (const Scenario& scenario : kScenarios) {
        stage = scenario.name;
        visit(scenario);
      }
      CHECK(quiet());
      body(rest());
      end();
      nothing_is_left();
    }
  }

  // met checks that the calls which every server makes have failed at all.
  void met(std::initializer_list<Call> calls) const {
    for (const Call call : calls) {
      if (strikes[static_cast<unsigned>(call)] == 0) FAIL(name_of(call));
    }
  }

  static void nothing_is_left() {
    LONGS_EQUAL(0, coir::account::connections.used());
    LONGS_EQUAL(0, coir::account::http.used());
    LONGS_EQUAL(0, coir::account::stacks.used());
    LONGS_EQUAL(0, coir::account::files.used());
  }
};

TEST(HttpFaults, a_refused_charge_refuses_one_piece_of_work) {
  within([this](const Left& before) {
    for (const Scenario& scenario : kScenarios) try_every({Call::charge, 0}, scenario, before, false);
  });
  met({Call::charge});
}

TEST(HttpFaults, charges_that_stay_refused_do_so_as_well) {
  within([this](const Left& before) { try_every({Call::charge, 0}, kScenarios[0], before, true); });
}

TEST(HttpFaults, a_call_to_the_kernel_that_fails_fails_one_piece_of_work) {
  within([this](const Left& before) {
    for (const Kind& kind : kKinds) {
      if (kind.call == Call::charge) continue;
      for (const Scenario& scenario : kScenarios) try_every(kind, scenario, before, false);
    }
  });
  met({Call::accept4, Call::fstat, Call::open, Call::pread, Call::recv, Call::send, Call::sendfile, Call::sendmsg});
  met({coir::kFibers ? Call::epoll_ctl : Call::poll});
}

TEST(HttpFaults, calls_to_the_kernel_that_fail_for_a_while_are_made_again) {
  within([this](const Left& before) {
    for (const Kind& kind : kKinds) {
      fault = {.call = kind.call, .error = kind.error, .nth = 1, .lasting = true};
      for (const Scenario& scenario : {kScenarios[0], kScenarios[1]}) {
        stage = scenario.name;
        inject(fault);
        {
          // The backlog may be as far as it comes.
          Client client(port, 100);
          const Client::Heard heard = client.ask(scenario);
          require(heard != Client::Heard::false_whole, "gets a wrong answer that looks whole");
          require(heard == Client::Heard::answer || struck() != 0, "gets no answer though nothing failed");
          withdraw();
        }
        visit(scenario);
        require(settled(before), "leaves something behind");
      }
    }
  });
}

TEST(HttpFaults, a_server_ends_though_a_call_to_the_kernel_fails) {
  for (const Setting& each : std::span(kSettings).first(kSettingsTried)) {
    setting = each;
    for (const Kind& kind : kKinds) {
      for (unsigned nth = 1;; ++nth) {
        CHECK(begin());
        stage = "the end";
        visit(kScenarios[0]);
        fault = {.call = kind.call, .error = kind.error, .nth = nth};
        inject(fault);
        end();
        const unsigned failed = withdraw();
        require(clean_end, "cuts somebody off");
        nothing_is_left();
        if (failed == 0) break;
        require(nth < 1000, "never comes");
      }
    }
  }
}

TEST(HttpFaults, a_server_that_cannot_start_says_so_and_leaves_nothing) {
  const int descriptors = open_descriptors();
  for (const Setting& each : std::span(kSettings).first(kSettingsTried)) {
    setting = each;
    for (const Kind& kind : kKinds) {
      for (unsigned nth = 1;; ++nth) {
        fault = {.call = kind.call, .error = kind.error, .nth = nth};
        stage = "the first client";
        inject(fault);
        if (begin()) {
          visit(kScenarios[0]);
          require(quiet(), "stays connected");
          const unsigned failed = withdraw();
          if (failed != 0) visit(kScenarios[0]);
          end();
          nothing_is_left();
          require(open_descriptors() == descriptors, "leaves a descriptor");
          if (failed == 0) break;
        } else {
          require(withdraw() != 0, "keeps the server from starting though nothing failed");
          nothing_is_left();
          require(open_descriptors() == descriptors, "leaves a descriptor");
        }
        require(nth < 1000, "never comes to an end");
      }
    }
  }
}
