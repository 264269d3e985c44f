// One handler, run in one of three ways, for scripts/bench modes:
//
//   modes_server run | pool THREADS | fibers
//
// prints its port and serves until SIGTERM.

#include <coir/http/run.h>
#include <coir/http/run_async.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

using namespace coir;

namespace {

void hello(http::Exchange& exchange) {
  exchange.respond(200, "text/plain", "hello, keep-alive\n");
}

}  // namespace

int main(int argc, char** argv) {
  const char* const way = argc > 1 ? argv[1] : "";
  auto listener = TcpListener::listen(*Address::parse("127.0.0.1:0"), {.backlog = 4096});
  if (!listener) return 1;
  printf("port: %u\n", listener->local_address().port());
  fflush(stdout);
  const http::ServerOptions options = {
      .handler = hello, .max_connections = 16'384, .idle_timeout = std::chrono::minutes(10)};
  std::expected<std::size_t, Error> served = std::unexpected(Error{ErrorCode::invalid});
  if (strcmp(way, "run") == 0) served = http::run(options, std::move(*listener), {SIGTERM});
  if (strcmp(way, "pool") == 0 && argc > 2) {
    served = http::run_pool(static_cast<std::size_t>(atoi(argv[2])), options, std::move(*listener), {SIGTERM});
  }
  if (strcmp(way, "fibers") == 0) served = http::run_async(options, std::move(*listener), {SIGTERM});
  if (!served) fprintf(stderr, "modes_server: %s\n", describe(served.error()));
  return served ? 0 : 1;
}
