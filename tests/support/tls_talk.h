#pragma once

#include <coir/fiber.h>
#include <coir/tls.h>

#include <string_view>

#include "tests/support/everywhere.h"
#include "tests/support/tls_pair.h"
#include "tests/support/until.h"

namespace coir::test {

// TlsTalk is the base of test groups in which a client and a server talk.
struct TlsTalk : Everywhere {
  TlsContext server = authority().server();
  TlsContext client = authority().client();
  std::size_t stack = 8 * 1024;  // of either
  // The server has the first word, behind its last flight: a client that is gone before that ends the handshake.
  bool server_begins = false;

  // until_waits returns when the fiber waits for its socket to become "readable" or "writable".
  void until_waits(const FiberRef& fiber, std::string_view what) { until_parked(fiber, what); }

  // between runs one body on the server's end and one on the client's, each in a fiber.
  template <class Server, class Client>
  void between(Server serve, Client ask) {
    SocketPair pair;
    auto serving = spawn({.name = "server", .stack = stack}, [&] {
      auto stream = TlsStream::accept(std::move(pair.server), server, patience());
      expect(stream && (!server_begins || stream->write("!", patience()).has_value()));
      if (stream) serve(*stream);
    });
    auto asking = spawn({.name = "client", .stack = stack}, [&] {
      auto stream = TlsStream::connect(std::move(pair.client), client, "board.test", patience());
      char byte[1];
      expect(stream && (!server_begins || stream->read(byte, patience()).has_value()));
      if (stream) ask(*stream);
    });
    expect(asking.join().has_value());
    expect(serving.join().has_value());
  }
};

}  // namespace coir::test
