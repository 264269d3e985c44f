// One handler, served in three ways: one request at a time, on threads, on fibers. A client asks each of them once.

#include <coir/http/client.h>
#include <coir/print.h>
#include <coir/runtime.h>

#include "local_site.h"

using namespace coir::http;

namespace {

void hello(Exchange& exchange) {
  exchange.respond(200, "text/plain", "hello");
}

void ask(const char* name, Mode mode) {
  const LocalSite site({.handler = hello, .max_active = 4}, mode);
  auto response = get(site.url("/"));
  const auto text = response ? response->text() : std::unexpected(response.error());
  coir::print(name, ": ", text ? std::string_view(*text) : coir::describe(text.error()), "\n");
}

}  // namespace

int main() {
  return coir::run([] {
    ask("serial", Mode::serial);
    // Handlers on threads need a build with several workers.
    ask("threads", coir::kManyWorkers ? Mode::threads : Mode::serial);
    ask("fibers", Mode::fibers);
  });
}
