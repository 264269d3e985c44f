#pragma once

#include <coir/format.h>
#include <coir/http/server.h>
#include <coir/runtime.h>
#include <coir/signal.h>
#include <signal.h>
#include <stdio.h>

#include <cstdint>

namespace coir::test {

// serve_printed is the main of a server for a test: it listens on a port of loopback, by 0 one of the kernel's choice,
// prints that, and serves until SIGTERM. Returns the exit status.
template <class Answer>
int serve_printed(Answer& answer, const http::ServerOptions& options = {}, http::Mode mode = http::Mode::fibers,
                  std::uint16_t port = 0) {
  char text[32];
  auto listener = TcpListener::listen(*Address::parse(format(text, "127.0.0.1:", port)), {.backlog = 4096});
  auto server = http::Server::create(http::answered_by(answer, options), mode);
  if (!listener || !server || !catch_signals({SIGTERM})) return 1;
  printf("port: %u\n", listener->local_address().port());
  fflush(stdout);
  if (!server->add(std::move(*listener))) return 1;
  return run([&] {
    if (!server->start()) return 1;
    server->serve_until({SIGTERM}, std::chrono::seconds(10));
    return 0;
  });
}

}  // namespace coir::test
