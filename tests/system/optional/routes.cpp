#include <coir/http/routes.h>

using namespace coir::http;

namespace {

void show(Exchange& exchange, std::string_view name, int number) {
  exchange.respond(number == 0 ? 404 : 200, "text/plain", name);
}

void around(Exchange& exchange, Next next) {
  next(exchange);
}

constexpr auto kInner = route::table(route::put<show>("/{name}/{number}"));
constexpr auto kRoutes =
    route::table(route::get<show>("/sensors/{name}/{number}"), route::mount<"/admin", kInner, around>());

}  // namespace

extern "C" void use_routes(ServerOptions& options) {
  route::serve<kRoutes, around>(options);
}
