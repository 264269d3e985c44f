// One call over four servers at once: what has come is told as it comes, the one that hangs costs its own half second
// alone, and a race ends with the first answer. Servers and client are in one process.

#include <coir/fiber.h>
#include <coir/mcp/fan_out.h>
#include <coir/mcp/server.h>
#include <coir/runtime.h>
#include <stdio.h>

#include <optional>

#include "local_site.h"

using namespace std::chrono_literals;
namespace http = coir::http;
namespace mcp = coir::mcp;

namespace {

// Each board answers a little later than the one before it; the last never does.
void read_temperature(mcp::Call& call) {
  const int board = call.context<const int>();
  if (!coir::sleep(board == 3 ? std::chrono::hours(1) : 100ms * board)) return;
  char text[16];
  call.text(coir::format(text, 20 + board, " C"));
}

constexpr mcp::Tool kTools[] = {
    mcp::tool<read_temperature>({.name = "temperature", .description = "Reads the sensor", .read_only = true})};

void answer(http::Exchange& exchange) {
  exchange.context<mcp::Server>().serve(exchange);
}

// Board is a server and a client of it.
struct Board {
  int number;
  std::optional<mcp::Server> server;
  std::optional<LocalSite> site;
  std::optional<mcp::McpClient> client;
  char url[64];

  bool start(int with_number) {
    number = with_number;
    auto made = mcp::Server::create({.tools = kTools, .context = &number});
    if (!made) return false;
    server.emplace(std::move(*made));
    site.emplace(http::ServerOptions{.handler = answer, .context = &*server});
    auto asks = mcp::McpClient::create({.url = coir::format(url, "http://127.0.0.1:", site->port(), "/mcp")});
    if (!asks) return false;
    client.emplace(std::move(*asks));
    return true;
  }
};
Board g_boards[4];
mcp::Branch g_branches[4];

void show(void*, mcp::Branch& branch) noexcept {
  const auto text =
      branch.outcome ? branch.outcome->result()["content"][0]["text"].text() : std::unexpected(coir::Error{});
  coir::on_worker_stack([&] {
    printf("board %d: %.*s\n", static_cast<int>(&branch - g_branches), text ? static_cast<int>(text->size()) : 9,
           text ? text->data() : "no answer");
  });
}

}  // namespace

int main() {
  return coir::run([] {
    for (int i = 0; i < 4; ++i) {
      if (!g_boards[i].start(i)) return 1;
      g_branches[i].client = &*g_boards[i].client;
      g_branches[i].tool = "temperature";
      g_branches[i].within = i == 3 ? 500ms : 30'000ms;
    }
    const auto answered = mcp::fan_out(g_branches, {.deadline = coir::Deadline::after(60s), .came = show});
    const auto raced = mcp::fan_out(g_branches, {.spread = mcp::Spread::race});
    coir::on_worker_stack([&] {
      printf("%zu of 4 have answered\n", answered ? *answered : 0);
      printf("the race is board 0's: %s\n", raced && g_branches[0].outcome ? "true" : "false");
    });
    for (Board& each : g_boards) {
      each.client.reset();
      each.site.reset();
      each.server.reset();
    }
    for (mcp::Branch& each : g_branches) each.outcome = std::unexpected(mcp::Failure(coir::ErrorCode::stale));
    return 0;
  });
}
