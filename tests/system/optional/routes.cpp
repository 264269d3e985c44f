#include <coir/http/routes.h>

using namespace coir::http;

namespace {

void show(Exchange& exchange, std::string_view name, int number) {
  exchange.respond(number == 0 ? 404 : 200, "text/plain", name);
}

void around_all(Exchange& exchange, Next next) {
  next(exchange);
}

auto all_routes() {
  return routes(get<"/sensors/{name}/{number}">(show),
                mount<"/admin", around_all>(routes(put<"/{name}/{number}">(show))));
}

}  // namespace

extern "C" void use_routes(ServerOptions& options) {
  static auto app = around<around_all>(all_routes());
  options = answered_by(app);
}
