// Sends back what it is sent, for scripts/bench echo: a fiber and a TcpStream for each connection. Prints its port, serves until it
// is ended. epoll_echo.cpp is the same without coir.

#include <coir/fiber.h>
#include <coir/runtime.h>
#include <coir/tcp.h>
#include <stdio.h>

using namespace coir;

namespace {

void echo(TcpStream stream) {
  char piece[512];
  while (const auto got = stream.read(piece)) {
    if (!stream.write({piece, *got})) break;
  }
}

}  // namespace

int main() {
  auto listener = TcpListener::listen(*Address::parse("127.0.0.1:0"), {.backlog = 4096});
  if (!listener) return 1;
  printf("port: %u\n", listener->local_address().port());
  fflush(stdout);
  return run([&] {
    while (auto accepted = listener->accept()) {
      spawn({.name = "echo", .stack = 8_KiB}, [stream = std::move(*accepted)]() mutable {
        echo(std::move(stream));
      }).detach();
    }
  });
}
