#pragma once

#include <coir/cancel_scope.h>
#include <coir/event.h>
#include <coir/fiber.h>
#include <coir/http/server.h>
#include <coir/runtime.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <chrono>
#include <source_location>
#include <span>
#include <string_view>

#include "tests/support/everywhere.h"
#include "tests/support/until.h"

namespace coir::test {

using namespace std::chrono_literals;
using http::Exchange;
using http::Server;
using http::ServerOptions;

inline Deadline soon() {
  return Deadline::after(100s);
}

inline constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: t\r\n\r\n";

// Seen is what the handlers of a test tell it.
struct Seen {
  Expectations* test = nullptr;
  Event news;                     // what handlers wait for
  std::atomic<int> waiting{0};    // handlers that are about to wait
  std::atomic<int> cancelled{0};  // handlers and children whose wait was cancelled
  std::atomic<int> told{0};       // by a case
  std::atomic<int> answered{0};
  std::atomic<const char*> reason{nullptr};
  std::atomic<bool> go{false};

  void expect(bool right, const std::source_location& where = std::source_location::current()) {
    test->expect(right, where);
  }
  // wait is what most handlers do, up to a day.
  bool wait() {
    ++waiting;
    const auto waited = news.wait(Deadline::after(24h));
    if (waited) return true;
    expect(waited.error() == ErrorCode::cancelled);
    reason = cancel_reason();
    ++cancelled;
    return false;
  }
  // compute goes on until the test says so, and waits for nothing meanwhile.
  void compute() {
    while (!go) yield_to_events();
  }
  bool was_reason(std::string_view text) const {
    const char* const given = reason;
    return given != nullptr && text == given;
  }
};

// seen_now is that of the server that runs.
inline Seen* seen_now = nullptr;
inline Seen& seen_by(Exchange&) {
  return *seen_now;
}

// hold is a long poll; /now answers at once.
inline void hold(Exchange& exchange) {
  Seen& seen = seen_by(exchange);
  if (exchange.request().path == "/now") return exchange.respond(200, "text/plain", "now\n");
  exchange.respond(200, "text/plain", seen.wait() ? "news\n" : "nothing\n");
  ++seen.answered;
}

// Client is a client that keeps what it hears.
struct Client {
  TcpStream stream;
  std::array<char, 1024> memory{};
  std::size_t have = 0;

  explicit Client(const Address& to) {
    if (auto connected = TcpStream::connect(to, soon())) stream = std::move(*connected);
  }
  bool say(std::string_view text) { return stream.write(text, soon()).has_value(); }
  bool hear(std::string_view text) {
    while (std::string_view(memory.data(), have).find(text) == std::string_view::npos) {
      auto got = stream.read(std::span(memory).subspan(have), soon());
      if (!got) return false;
      have += *got;
    }
    return true;
  }
  bool hear_the_end() {
    char rest[512];
    for (;;) {
      auto got = stream.read(rest, soon());
      if (!got) return got.error() == ErrorCode::end_of_stream;
    }
  }
  void end_its_side() { stream.shutdown_write(); }
  void reset() {
    const linger now{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(stream.fd(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
    stream.close();
  }
};

// HandlerServer is the group of tests of handlers beside a server.
class HandlerServer : public Everywhere {
 public:
  // serving runs `visit` beside a server with these options, in every kind of run.
  template <class Visit>
  void serving(ServerOptions options, Visit visit) {
    serving(options, nullptr, visit);
  }
  // The same by TLS.
  template <class Visit>
  void serving(ServerOptions options, TlsContextSlot* tls, Visit visit) {
    everywhere([&] {
      Seen seen;
      seen.test = this;
      seen_now = &seen;
      auto server = Server::create(options);
      auto listener = TcpListener::listen(*Address::parse("127.0.0.1:0"));
      const Address address = listener->local_address();
      expect(server && server->add(std::move(*listener), tls) && server->start());
      visit(*server, address, seen);
      expect(server->stop(soon()).has_value());
      expect(server->gauges().open == 0);
    });
  }
};

}  // namespace coir::test
