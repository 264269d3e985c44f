// A device's web side as a table of routes, which the compiler checks: typed parameters, a part of the tree behind a
// token, 404 told from 405. The client here is coir's own.

#include <coir/format.h>
#include <coir/http/authorization.h>
#include <coir/http/client.h>
#include <coir/http/routes.h>
#include <coir/runtime.h>
#include <coir/worker_stack.h>
#include <stdio.h>

#include "local_site.h"

using namespace coir::http;

namespace {

struct Device {
  int targets[3] = {19, 21, 17};
};

void answer_number(Exchange& exchange, int number) {
  char text[16];
  exchange.respond(200, "text/plain", coir::format(text, number));
}

void list_logs(Exchange& exchange, std::string_view path) {
  exchange.respond(200, "text/plain", path);
}

bool is_owner(std::string_view token) {
  return same_secret(token, "a-token-that-nobody-can-guess");
}

auto routes_of(Device& device) {
  const auto show = [&](Exchange& exchange, unsigned room) {
    if (room >= std::size(device.targets)) return exchange.respond_status(404);
    answer_number(exchange, device.targets[room]);
  };
  const auto change = [&](Exchange& exchange, unsigned room, int degrees) {
    if (room >= std::size(device.targets) || degrees < 5 || degrees > 30) return exchange.respond_status(400);
    answer_number(exchange, device.targets[room] = degrees);
  };
  auto admin = routes(put<"/rooms/{room}/{degrees}">(auto(change)), get<"/logs/{path...}">(list_logs));
  return routes(get<"/rooms/{room}">(auto(show)), mount<"/admin">(std::move(admin), require_bearer(is_owner)));
}

void ask(const LocalSite& site, std::string_view method, std::string_view path, bool token = false) {
  const RequestField fields[] = {{"Authorization", "Bearer a-token-that-nobody-can-guess", true}};
  ClientRequest request = {.url = site.url(path), .method = method};
  if (token) request.fields = fields;
  Client* const client = Client::shared();
  if (client == nullptr) return;
  auto response = client->request(request);
  if (!response) return;
  const std::string_view allow = response->header("Allow");
  const auto text = response->text();
  if (!text) return;
  const std::string_view said = allow.empty() ? text->substr(0, text->find('\n')) : allow;
  char line[200];
  coir::Formatter out(line);
  out.add(method, " ", path, ": ", response->status());
  if (!said.empty()) out.add(" ", said);
  out.add("\n");
  coir::on_worker_stack([&] { fwrite(out.text().data(), 1, out.text().size(), stdout); });
}

}  // namespace

int main() {
  Device device;
  auto app = routes_of(device);
  return coir::run([&] {
    const LocalSite site(answered_by(app));
    ask(site, "GET", "/rooms/1");
    ask(site, "GET", "/rooms/kitchen");
    ask(site, "PUT", "/rooms/1");
    ask(site, "PUT", "/admin/rooms/1/23");
    ask(site, "PUT", "/admin/rooms/1/23", true);
    ask(site, "PUT", "/admin/rooms/1/99", true);
    ask(site, "GET", "/rooms/1");
  });
}
