#pragma once

// The one header of a server: a table of routes with its handlers, what answers by files and by counters, and serve, which
// does the rest.
//
//   #include <coir/http.h>
//   using namespace coir::http;
//
//   int main() {
//     int visits = 0;
//     auto app = routes(
//         get<"/">([&](Exchange& exchange) { exchange.respond(200, "text/plain", "hello\n"); ++visits; }),
//         get<"/double/{number}">([](Exchange& exchange, int number) {
//           char text[16];
//           exchange.respond(200, "text/plain", coir::format(text, 2 * number));
//         }));
//     return serve({.listen = ":8080", .memory = 8 << 20}, app);
//   }

#include <coir/format.h>
#include <coir/http/content.h>
#include <coir/http/exchange.h>
#include <coir/http/files.h>
#include <coir/http/metrics.h>
#include <coir/http/routes.h>
#include <coir/http/serve.h>
