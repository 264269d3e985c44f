// The server of front.cpp with a tool of MCP: server, schemas and JSON, but no client, gateway or keys of others.
#include <coir/http.h>
#include <coir/mcp.h>

#include <optional>

namespace http = coir::http;
namespace mcp = coir::mcp;

namespace {

struct Level {
  int pin = 0;
  double volts = 0;
};
constexpr auto kLevel =
    mcp::fields(mcp::field<&Level::pin>("pin").between(0, 31), mcp::field<&Level::volts>("volts").optional());

std::optional<Level> set_level(mcp::Call& call, const Level& wanted) {
  call.progress(1, 2);
  return wanted;
}

constexpr mcp::Tool kTools[] = {mcp::tool<set_level, kLevel, kLevel>({.name = "set_level", .idempotent = true})};

}  // namespace

int main(int, char** words) {
  mcp::McpServer tools{{.name = "front", .tools = kTools}};
  auto app = http::routes(http::get<"/">([](http::Exchange& exchange) { exchange.respond(200, "text/plain", "here"); }),
                          http::any<"/mcp">(tools));
  return http::serve({.name = "front", .listen = words[1]}, app);
}
