// The front server in scripts/bench mcp, before other servers: a tool that spreads one call over several clients of the server at
// URL, that server's own tools as up_NAME, and a small file at /small.txt.
//
//   mcp_front PORT URL [ADDRESS]    ends at SIGTERM

#include <coir/format.h>
#include <coir/http.h>
#include <coir/mcp.h>
#include <coir/mcp/client.h>
#include <coir/mcp/gateway.h>
#include <coir/nursery.h>
#include <stdio.h>
#include <string.h>

#include <optional>

using namespace std::chrono_literals;
namespace mcp = coir::mcp;

namespace {

constexpr std::uint32_t kMostClients = 8;

// Front is what the tool works with: each client has connections of its own, as one of another server would.
struct Front {
  std::optional<mcp::McpClient> clients[kMostClients];
  std::optional<mcp::McpServer> server;
};

struct Spreading {
  std::uint32_t count = 1;
  std::uint32_t wait_ms = 0;
  std::uint32_t hang = 0;
  std::uint32_t within_ms = 30'000;
};
constexpr auto kSpreading =
    mcp::fields(mcp::field<&Spreading::count>("count", "clients").between(1, kMostClients),
                mcp::field<&Spreading::wait_ms>("wait_ms", "each upstream takes so long"),
                mcp::field<&Spreading::hang>("hang", "of them, so many never answer").optional(),
                mcp::field<&Spreading::within_ms>("within_ms", "the deadline of each").optional());

// spread_over has room for kMost branches: a call that waits keeps them on its stack.
template <std::size_t kMost>
[[gnu::noinline]] void spread_over(mcp::Call& call, const Spreading& wanted) {
  auto& front = call.context<Front>();
  mcp::Branch branches[kMost];
  char waits[32];
  const std::string_view waiting = coir::format(waits, R"({"ms":)", wanted.wait_ms, "}");
  for (std::uint32_t i = 0; i < wanted.count; ++i) {
    branches[i].client = &*front.clients[i];
    branches[i].tool = "wait";
    branches[i].arguments = i < wanted.hang ? std::string_view(R"({"ms":3600000})") : waiting;
    branches[i].within = std::chrono::milliseconds(wanted.within_ms);
  }
  const auto answered = mcp::fan_out(std::span(branches, wanted.count));
  if (!answered) return call.fail("it was given up");
  char text[16];
  call.text(coir::format(text, *answered));
}

void spread(mcp::Call& call, const Spreading& wanted) {
  wanted.count <= 4 ? spread_over<4>(call, wanted) : spread_over<kMostClients>(call, wanted);
}

constexpr mcp::Tool kTools[] = {mcp::tool<spread, kSpreading>({.name = "spread", .read_only = true})};
constexpr std::string_view kAnybody[] = {"*"};
char g_small[100];

void answer(Front& front, coir::http::Exchange& exchange) {
  if (exchange.request().path == "/mcp") return (*front.server)(exchange);
  exchange.respond(200, "text/plain", {g_small, sizeof g_small});
}

int complain(coir::Error why) {
  return fprintf(stderr, "mcp_front: %s\n", describe(why)), 1;
}

}  // namespace

int main(int count, char** words) {
  if (count != 3 && count != 4) return fputs("usage: mcp_front PORT URL [ADDRESS]\n", stderr), 2;
  memset(g_small, '0', sizeof g_small);
  static Front front;
  const coir::http::ClientOptions connections{.max_connections = 4096, .max_resting = 16};
  const mcp::McpClientOptions upstream{.url = words[2], .http = &connections};
  for (auto& each : front.clients) {
    auto made = mcp::McpClient::create(upstream);
    if (!made) return complain(made.error());
    each.emplace(std::move(*made));
  }
  const mcp::Mount mounts[] = {{.prefix = "up", .upstream = upstream}};
  auto gateway = mcp::Gateway::create(mounts);
  if (!gateway) return complain(gateway.error());
  mcp::Source* const sources[] = {&gateway->source()};
  front.server.emplace(mcp::McpServerOptions{.name = "front", .tools = kTools, .sources = sources, .context = &front});
  char listen[64];
  coir::http::ServerOptions options{.max_connections = 8192, .max_active = 2048};
  options.allow_hosts = kAnybody;
  options.idle_timeout = 0ms;
  auto answer_all = [](coir::http::Exchange& exchange) { answer(front, exchange); };
  return coir::http::serve(
      {.name = "mcp_front",
       .listen = coir::format(listen, count == 4 ? words[3] : "127.0.0.1", ":", words[1]),
       .server = options,
       .drain_timeout = 1s,
       .jobs =
           [&](coir::Nursery& jobs) { jobs.start({.name = "mounts"}, [&] { static_cast<void>(gateway->run()); }); }},
      answer_all);
}
