// A server of one page, and nothing else: what a server of MCP is larger than.
#include <coir/http.h>

namespace http = coir::http;

int main(int, char** words) {
  auto app =
      http::routes(http::get<"/">([](http::Exchange& exchange) { exchange.respond(200, "text/plain", "here"); }));
  return http::serve({.name = "front", .listen = words[1]}, app);
}
