// One call over four servers at once: what has come is shown as it comes, the one that hangs costs its own half second
// alone, and a race ends with the first answer. Servers and client are in one process.

#include <coir/fiber.h>
#include <coir/mcp.h>
#include <coir/mcp/client.h>
#include <coir/runtime.h>
#include <stdio.h>

#include <optional>

#include "local_site.h"

using namespace std::chrono_literals;
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

// Board is a server and a client of it.
struct Board {
  const int number;
  mcp::McpServer tools{{.tools = kTools, .context = const_cast<int*>(&number)}};
  LocalSite site{coir::http::answered_by(tools)};
  std::optional<mcp::McpClient> client;
};

void show(const mcp::Branch* branches, const mcp::Branch& branch) {
  const auto text =
      branch.outcome ? branch.outcome->result()["content"][0]["text"].text() : std::unexpected(coir::Error{});
  coir::on_worker_stack([&] {
    printf("board %d: %.*s\n", static_cast<int>(&branch - branches), text ? static_cast<int>(text->size()) : 9,
           text ? text->data() : "no answer");
  });
}

}  // namespace

int main() {
  return coir::run([] {
    Board boards[] = {{.number = 0}, {.number = 1}, {.number = 2}, {.number = 3}};
    mcp::Branch branches[4];
    for (Board& board : boards) {
      auto asks = mcp::McpClient::create({.url = board.site.url("/mcp")});
      if (!asks) return 1;
      board.client.emplace(std::move(*asks));
      mcp::Branch& branch = branches[board.number];
      branch.client = &*board.client;
      branch.tool = "temperature";
      if (board.number == 3) branch.within = 500ms;
    }
    const auto answered = mcp::fan_out(branches, {.deadline = coir::Deadline::after(60s),
                                                  .came = [&](mcp::Branch& branch) { show(branches, branch); }});
    const auto raced = mcp::fan_out(branches, {.spread = mcp::Spread::race});
    coir::on_worker_stack([&] {
      printf("%zu of 4 have answered\n", answered ? *answered : 0);
      printf("the race is board 0's: %s\n", raced && branches[0].outcome ? "true" : "false");
    });
    return 0;
  });
}
