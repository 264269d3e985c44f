// The server of scripts/bench mcp and of capacity --mcp: a tool that adds, at /mcp, and one that takes its time.
//
//   mcp_server PORT [ADDRESS]    ends at SIGTERM; as many sessions and listeners as the memory allows

#include <coir/fiber.h>
#include <coir/http/server.h>
#include <coir/mcp.h>
#include <coir/program.h>
#include <coir/signal.h>
#include <coir/stack_size.h>
#include <signal.h>
#include <stdio.h>

#include <optional>

using namespace std::chrono_literals;
using coir::operator""_KiB;
namespace mcp = coir::mcp;

namespace {

struct Sum {
  std::int32_t a = 0;
  std::int32_t b = 0;
};
constexpr auto kSum = mcp::fields(mcp::field<&Sum::a>("a"), mcp::field<&Sum::b>("b"));

void add(mcp::Call& call, const Sum& sum) {
  char text[16];
  call.text(coir::format(text, std::int64_t{sum.a} + sum.b));
}

struct Wait {
  std::uint32_t ms = 0;
};
constexpr auto kWait = mcp::fields(mcp::field<&Wait::ms>("ms"));

void wait(mcp::Call& call, const Wait& wanted) {
  if (coir::sleep(std::chrono::milliseconds(wanted.ms))) call.text("waited");
}

constexpr mcp::Tool kTools[] = {
    mcp::tool<wait, kWait>({.name = "wait", .read_only = true, .deadline = std::chrono::hours(2)}),
    mcp::tool<add, kSum>({.name = "add", .description = "Adds two numbers", .read_only = true, .open_world = false})};

constexpr std::string_view kAnybody[] = {"*"};

}  // namespace

int main(int count, char** words) {
  if (count < 2) return fputs("usage: mcp_server PORT [ADDRESS]\n", stderr), 2;
  signal(SIGPIPE, SIG_IGN);
  char where[64];
  snprintf(where, sizeof where, "%s:%s", count > 2 ? words[2] : "127.0.0.1", words[1]);
  if (!coir::catch_signals({SIGTERM, SIGINT})) return 1;
  auto offered = mcp::McpServer::create({.name = "bench", .tools = kTools, .keep_alive = 3600s, .max_sessions = 8192});
  if (!offered) return fprintf(stderr, "mcp_server: %s\n", describe(offered.error())), 1;
  const auto address = coir::Address::parse(where);
  if (!address) return fprintf(stderr, "mcp_server: %s\n", describe(address.error())), 1;
  auto listener = coir::TcpListener::listen(*address);
  if (!listener) return fprintf(stderr, "mcp_server: %s\n", describe(listener.error())), 1;
  coir::http::ServerOptions options;
  options.max_connections = 8192;
  options.max_active = 8192;
  options.allow_hosts = kAnybody;
  options.idle_timeout = 0ms;
  options.handler = *offered;
  options.handler_stack = 16_KiB;
  auto server = coir::http::Server::create(options);
  if (!server) return fprintf(stderr, "mcp_server: %s\n", describe(server.error())), 1;
  if (auto added = server->add(std::move(*listener)); !added)
    return fprintf(stderr, "mcp_server: %s\n", describe(added.error())), 1;
  return coir::run_program([&] {
    if (auto started = server->start(); !started) {
      fprintf(stderr, "mcp_server: %s\n", describe(started.error()));
      return 1;
    }
    server->serve_until({SIGTERM, SIGINT}, 1s);
    return 0;
  });
}
