// Want of memory or descriptors at any one point of a WebSocket's life, of a resting one's and of a fiber's: the n-th
// charge to the ledger is refused, or the n-th call to the kernel of a kind fails, for n = 1, 2, 3 ... until a life meets
// none. The client is refused or its connection ends, never left waiting; the next lives as if nothing had been; nothing
// is left over.

#include <CppUTest/TestHarness.h>
#include <arpa/inet.h>
#include <coir/http/accounts.h>
#include <coir/http/resting_sockets.h>
#include <coir/http/server.h>
#include <coir/http/topic.h>
#include <coir/http/websocket_server.h>
#include <coir/pressure.h>
#include <coir/runtime.h>
#include <coir/signal.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <new>
#include <optional>
#include <string_view>

#include "net/src/socket/buffer_pool.h"
#include "tests/support/faults.h"
#include "tests/support/scale.h"
#include "tests/support/until.h"

using namespace coir::http;
using namespace coir::test;
using namespace std::chrono_literals;

namespace {

struct Program {
  struct State {
    std::uint64_t number = 0;
  };
  Topic all;
  void opened(RestingSocket& socket, State&) { static_cast<void>(socket.subscribe(all)); }
  void message(RestingSocket& socket, State&, const WebSocketMessage& message) {
    if (!socket.send_text(message.bytes)) static_cast<void>(socket.close(CloseCode::try_again_later));
    all.publish_text("to all");
  }
};

Program g_program;
RestingSockets<Program>* g_sockets;

void handler(Exchange& exchange) {
  if (exchange.request().path == "/rest") return static_cast<void>(g_sockets->accept(exchange));
  auto socket = accept_websocket(exchange, {.options = {.close_timeout = 100ms}});
  if (!socket) return;
  while (auto message = socket->receive()) {
    if (!socket->send_text(message->bytes) || !socket->send_text("to all")) return;
  }
}

struct Kind {
  Call call;
  int error;
};
constexpr Kind kKinds[] = {
    {Call::charge, 0},     {Call::accept4, EMFILE},  {Call::epoll_ctl, ENOMEM}, {Call::madvise, ENOSYS},
    {Call::mmap, ENOMEM},  {Call::mprotect, ENOMEM}, {Call::recv, ENOMEM},      {Call::recv, ECONNRESET},
    {Call::send, ENOBUFS}, {Call::send, ECONNRESET}, {Call::sendmsg, ENOMEM},   {Call::sendmsg, EPIPE},
};

// Life is a client's, by a blocking socket, so that nothing of coir is on this side.
class Life {
 public:
  explicit Life(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval patience = {.tv_sec = 60, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    alive_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  }
  ~Life() { ::close(fd_); }
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  // lives goes through all of it, and tells whether it was whole. late: it was left waiting.
  bool lives(const char* path) {
    char request[300];
    snprintf(request, sizeof request,
             "GET %s HTTP/1.1\r\nHost: t\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
             "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
             path);
    say(request);
    // To the end of the head.
    while (alive_ && (have_ < 4 || memcmp(heard_ + have_ - 4, "\r\n\r\n", 4) != 0)) hear(1);
    if (!alive_ || memcmp(heard_, "HTTP/1.1 101", 12) != 0) return false;
    // A message, halves of one with a ping between, and the end; all masked by zeros.
    say({"\x81\x82\0\0\0\0hi", 8});
    if (!hears({"\x81\x02hi\x81\x06to all", 12})) return false;
    say({"\x01\x81\0\0\0\0a", 7});
    say({"\x89\x81\0\0\0\0p", 7});
    if (!hears({"\x8a\x01p", 3})) return false;
    say({"\x80\x81\0\0\0\0b", 7});
    if (!hears({"\x81\x02"
                "ab\x81\x06to all",
                12}))
      return false;
    say({"\x88\x82\0\0\0\0\x03\xe8", 8});
    return hears({"\x88\x02\x03\xe8", 4});
  }
  bool late() const { return late_; }

 private:
  void say(std::string_view bytes) {
    if (alive_ && ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) alive_ = false;
  }
  void hear(std::size_t bytes) {
    if (have_ == sizeof heard_) have_ = 0;
    const ssize_t got = ::recv(fd_, heard_ + have_, bytes, 0);
    if (got < 0 && errno == EAGAIN) late_ = true;
    if (got <= 0) alive_ = false;
    if (got > 0) have_ += static_cast<std::size_t>(got);
  }
  bool hears(std::string_view bytes) {
    have_ = 0;
    while (alive_ && have_ < bytes.size()) hear(bytes.size() - have_);
    return alive_ && std::string_view(heard_, have_) == bytes;
  }

  int fd_;
  bool alive_ = false, late_ = false;
  std::size_t have_ = 0;
  char heard_[1024];
};

}  // namespace

struct SocketFaultsServer : Utest {
  std::optional<RestingSockets<Program>> sockets;
  alignas(Server) char place[sizeof(Server)];
  Server* server = nullptr;
  std::uint16_t port = 0;
  unsigned workers = 1;
  pthread_t thread = {};
  std::atomic<bool> running = false, clean_end = false;

  void setup() override {
    spare_this_thread();
    ::signal(SIGPIPE, SIG_IGN);
    CHECK(coir::catch_signals({SIGUSR1}).has_value());
  }
  void teardown() override { withdraw(); }

  static void* run(void* of) {
    auto& self = *static_cast<SocketFaultsServer*>(of);
    static_cast<void>(coir::run_until_idle({.workers = self.workers, .hot_stacks = 1}, [&self] {
      if (!self.server->start()) return;
      self.running = true;
      self.clean_end = self.server->serve_until({SIGUSR1}, 20s) == 0;
    }));
    return nullptr;
  }

  void begin() {
    auto made = RestingSockets<Program>::create(
        g_program, {.max_sockets = 8, .socket = {.max_message = 65'536, .close_timeout = 100ms}});
    CHECK(made.has_value());
    sockets.emplace(std::move(*made));
    g_sockets = &*sockets;
    auto created = Server::create(
        {.handler = handler, .max_connections = 16, .max_active = 4, .idle_timeout = 2s, .header_timeout = 1s});
    auto listener = coir::TcpListener::listen(*coir::Address::parse("127.0.0.1:0"));
    CHECK(created && listener);
    port = listener->local_address().port();
    CHECK(created->add(std::move(*listener)).has_value());
    server = new (place) Server(std::move(*created));
    running = clean_end = false;
    CHECK_EQUAL(0, pthread_create(&thread, nullptr, &run, this));
    until([this] { return running.load(); });
  }
  void end() {
    CHECK_EQUAL(0, kill(getpid(), SIGUSR1));
    pthread_join(thread, nullptr);
    CHECK_TRUE(clean_end);
    server->~Server();
    LONGS_EQUAL(0, sockets->open());
    LONGS_EQUAL(0, g_program.all.subscribers());
    sockets.reset();
    LONGS_EQUAL(0, coir::account::connections.used());
    LONGS_EQUAL(0, coir::account::buffers.used() - coir::Buffer::spare_bytes());
  }

  void tell(const char* wrong, const char* path, const Fault& fault) const {
    static char text[200];
    snprintf(text, sizeof text, "%s %s: %s of number %u (errno %d), %u workers", path, wrong, name_of(fault.call),
             fault.nth, fault.error, workers);
    FAIL(text);
  }

  // try_every lets each call of a kind fail once while a client lives.
  void try_every(const Kind& kind, const char* path) {
    for (unsigned nth = 1; nth < 200; ++nth) {
      const Fault fault = {.call = kind.call, .error = kind.error, .nth = nth};
      inject(fault);
      {
        Life life(port);
        static_cast<void>(life.lives(path));
        if (life.late()) tell("is left waiting", path, fault);
      }
      until([this] { return sockets->open() == 0; });
      if (withdraw() == 0) return;
      Life next(port);
      if (!next.lives(path)) tell("does not live afterwards", path, fault);
    }
  }
};

TEST_GROUP_BASE(SocketFaults, SocketFaultsServer){};

TEST(SocketFaults, whatever_fails_ends_one_connection) {
  for (const unsigned each : {1u, 2u}) {
    workers = each;
    begin();
    for (const char* path : {"/rest", "/fiber"}) {
      Life life(port);
      CHECK_TRUE(life.lives(path));
      for (const Kind& kind : kKinds) try_every(kind, path);
    }
    end();
  }
}
