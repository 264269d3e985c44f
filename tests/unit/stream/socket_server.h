#pragma once

#include <coir/config.h>
#include <coir/http/server.h>
#include <coir/program.h>

#include <string_view>

#include "tests/support/expectations.h"
#include "tests/support/tls_pair.h"
#include "tests/support/until.h"
#include "tests/unit/websocket/raw_peer.h"

#if COIR_NO_ASYNC
#include "tests/unit/http/run_beside.h"
#else
#include <coir/event.h>

#include <atomic>
#endif

namespace coir::test {

inline constexpr std::string_view kOpening =
    "GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

// SocketServer is the group of tests whose clients open WebSockets to a server of the test's.
class SocketServer : public Expecting {
 public:
  http::Server* server = nullptr;
  Address address;
  TlsContextSlot* tls = nullptr;

  // within runs the body as a client of a server: as a fiber with one worker and with two, or without fibers beside a
  // thread that serves. `prepare` makes what the handler uses, anew each time, and ends when the server has.
  template <class Prepare, class Body>
  void within(const http::ServerOptions& options, Prepare prepare, Body body) {
#if COIR_NO_ASYNC
    with_one(options, prepare, [&] { run_beside(*server, body); });
    check();
#else
    for (const unsigned workers : {1u, 2u}) {
      const auto ran = run_until_idle({.workers = workers, .default_stack = 65'536}, [&] {
        with_one(options, prepare, [&] {
          expect(server->start().has_value());
          body();
          expect(server->stop(patience()).has_value());
        });
      });
      check();
      CHECK_TRUE(ran.has_value());
    }
#endif
  }

  // connected is a connection to it.
  Stream connected() {
    auto tcp = TcpStream::connect(address, patience());
    if (!tcp) __builtin_trap();
#if COIR_TLS && !COIR_NO_ASYNC
    if (tls != nullptr) {
      static const TlsContext trusts = authority().client();
      auto secure = TlsStream::connect(std::move(*tcp), trusts, "board.test", patience());
      if (!secure) __builtin_trap();
      return std::move(*secure);
    }
#endif
    return std::move(*tcp);
  }

  // answer_to sends a request's head, the empty line too, and reads the head of the answer into `into`.
  static std::string_view answer_to(Stream& stream, std::string_view request, std::span<char> into) {
    return stream.write(request, patience()) ? head_of(stream, into) : std::string_view();
  }
  // head_of reads the head of an answer.
  static std::string_view head_of(Stream& stream, std::span<char> into) {
    std::size_t used = 0;
    // A byte at a time: what is behind the head is the socket's.
    while (!std::string_view(into.data(), used).ends_with("\r\n\r\n")) {
      if (used == into.size() || !stream.read(into.subspan(used, 1), patience())) break;
      ++used;
    }
    return {into.data(), used};
  }

  // joined opens a WebSocket as a client; `behind` are bytes that come with its request.
  RawPeer joined(std::string_view behind = {}) {
    Stream stream = connected();
    static thread_local char request[16 * 1024];
    char head[512];
    char* at = request;
    for (const std::string_view part : {kOpening, std::string_view("\r\n"), behind}) {
      if (!part.empty()) memcpy(at, part.data(), part.size());
      at += part.size();
    }
    const auto answer = answer_to(stream, {request, static_cast<std::size_t>(at - request)}, head);
    expect(answer.starts_with("HTTP/1.1 101 ") &&
           answer.find("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=") != std::string_view::npos);
    return RawPeer(std::move(stream));
  }

#if !COIR_NO_ASYNC
  // joined_early sends a frame while the handler, which counts itself in `waiting`, waits for `go`: its watch on a hang-up takes
  // the edge.
  RawPeer joined_early(std::atomic<int>& waiting, Event& go, std::string_view frame) {
    Stream stream = connected();
    expect(stream.write(kOpening, patience()) && stream.write("\r\n", patience()));
    until([&] { return waiting == 1; });
    until_polled();
    expect(stream.write(frame, patience()).has_value());
    until_polled();
    go.set();
    char head[512];
    expect(head_of(stream, head).starts_with("HTTP/1.1 101 "));
    return RawPeer(std::move(stream));
  }
#endif

  static bool echoes(RawPeer& peer) { return peer.say(Opcode::text, "echo") && peer.hear().is(Opcode::text, "echo"); }

  // expect_long_messages_with_the_request sends binary messages of many kilobytes, to be echoed, behind the request.
  void expect_long_messages_with_the_request() {
    for (const std::size_t size : {4'000u, 4'700u, 9'000u}) {
      static char behind[10'000];
      memset(behind, 'x', sizeof behind);
      // Masked by zeros.
      const unsigned char front[] = {
          0x82, 0x80 | 126, static_cast<unsigned char>(size >> 8), static_cast<unsigned char>(size), 0, 0, 0, 0};
      memcpy(behind, front, sizeof front);
      auto peer = joined({behind, sizeof front + size});
      const auto heard = peer.hear();
      expect(!heard.gone && heard.opcode == Opcode::binary && heard.size == size);
      expect(echoes(peer));
    }
  }

 private:
  template <class Prepare, class Body>
  void with_one(const http::ServerOptions& options, Prepare prepare, Body body) {
    auto made = http::Server::create(options);
    expect(made.has_value());
    if (!made) return;
    // The program that keeps the sockets outlives the server.
    prepare([&] {
      http::Server serving = std::move(*made);
      server = &serving;
      auto listener = TcpListener::listen(*Address::parse("127.0.0.1:0"));
      expect(listener.has_value());
      address = listener->local_address();
      expect(serving.add(std::move(*listener), tls).has_value());
      body();
      server = nullptr;
    });
  }
};

}  // namespace coir::test
