// A server of MCP with three tools, in a screenful: each is a function whose arguments are a plain struct, of which the
// JSON schema is made while compiling.
//
//   mcp_tools 8080     serves http://127.0.0.1:8080/mcp until Ctrl-C
//   mcp_tools          prints the schema of its tools, and ends

#include <coir/fiber.h>
#include <coir/http.h>
#include <coir/mcp.h>
#include <stdio.h>

using namespace std::chrono_literals;
namespace http = coir::http;
namespace mcp = coir::mcp;

namespace {

bool g_pins[32];

struct SetPin {
  int pin = 0;
  bool high = true;
};
constexpr auto kSetPin = mcp::fields(mcp::field<&SetPin::pin>("pin", "number of the pin").between(0, 31),
                                     mcp::field<&SetPin::high>("high", "its level").optional());
void set_pin(mcp::Call& call, const SetPin& arguments) {
  g_pins[arguments.pin] = arguments.high;
  call.text(arguments.high ? "high" : "low");
}

struct Climate {
  double celsius = 0;
  int percent = 0;
};
constexpr auto kClimate = mcp::fields(mcp::field<&Climate::celsius>("celsius", "temperature"),
                                      mcp::field<&Climate::percent>("percent", "relative humidity"));
std::optional<Climate> read_climate(mcp::Call&) {
  return Climate{.celsius = 21.5, .percent = 40};
}

// A long one tells how far it is, and ends at once when its client leaves.
void blink(mcp::Call& call) {
  for (int i = 0; i < 10; ++i) {
    call.progress(i, 10);
    g_pins[25] = i % 2 == 0;
    if (!coir::sleep(200ms)) return;
  }
  call.text("blinked");
}

constexpr mcp::Tool kTools[] = {
    mcp::tool<set_pin, kSetPin>(
        {.name = "set_pin", .description = "Sets a pin", .idempotent = true, .open_world = false}),
    mcp::tool<read_climate, mcp::kNothing, kClimate>(
        {.name = "read_climate", .description = "Reads the sensor", .read_only = true}),
    mcp::tool<blink>({.name = "blink", .description = "Blinks the LED for two seconds", .destructive = false}),
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    for (const mcp::Tool& each : kTools) {
      printf("%.*s: %.*s\n", static_cast<int>(each.marks.name.size()), each.marks.name.data(),
             static_cast<int>(each.input_schema.size()), each.input_schema.data());
    }
    return 0;
  }
  mcp::McpServer tools{{.name = "board", .tools = kTools}};
  auto app = http::routes(http::any<"/mcp">(tools));
  char listen[32];
  return http::serve({.name = "mcp_tools", .listen = coir::format(listen, "127.0.0.1:", argv[1])}, app);
}
