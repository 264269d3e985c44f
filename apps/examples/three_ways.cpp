// One handler, run in three ways: on one thread, on a pool of threads, on fibers. Each serves until a signal comes.
//
//   three_ways thread 8080     or pool, or fibers: serves http://<this machine>:8080/ until Ctrl-C
//   three_ways                 has a child ask each of them once

#include <coir/atomic.h>
#include <coir/format.h>
#include <coir/http/client.h>
#include <coir/http/run_async.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace coir::http;

namespace {

void hello(Exchange& exchange) {
  exchange.respond(200, "text/plain", "hello");
}

std::expected<std::size_t, coir::Error> serve(std::string_view way, coir::TcpListener&& listener) {
  const ServerOptions options = {.handler = hello};
  if (way == "fibers") return run_async(options, std::move(listener), {SIGINT, SIGTERM});
  // A build with one worker has no pool: there one thread serves.
  if (way == "pool" && coir::kManyWorkers) return run_pool(4, options, std::move(listener), {SIGINT, SIGTERM});
  return run(options, std::move(listener), {SIGINT, SIGTERM});
}

// ask is the child: it asks once, and then ends the server by the signal that a user would send.
void ask(const char* way, std::uint16_t port) {
  char url[40];
  auto response = get(coir::format(url, "http://127.0.0.1:", port, "/"));
  const auto text = response ? response->text() : std::unexpected(response.error());
  printf("%s: %.*s\n", way, text ? static_cast<int>(text->size()) : 0, text ? text->data() : "");
  fflush(stdout);
  kill(getppid(), SIGTERM);
}

int try_out(const char* way) {
  auto listener = coir::TcpListener::listen(*coir::Address::parse("127.0.0.1:0"));
  if (!listener) return 1;
  const std::uint16_t port = listener->local_address().port();
  const pid_t child = fork();
  if (child < 0) return 1;
  if (child == 0) {
    ask(way, port);
    _exit(0);
  }
  const auto served = serve(way, std::move(*listener));
  waitpid(child, nullptr, 0);
  return served ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return try_out("thread") + try_out("pool") + try_out("fibers") == 0 ? 0 : 1;
  char text[32];
  const auto at = coir::Address::parse(coir::format(text, "*:", static_cast<const char*>(argv[2])));
  if (!at) return 2;
  auto listener = coir::TcpListener::listen(*at);
  return listener && serve(argv[1], std::move(*listener)) ? 0 : 1;
}
