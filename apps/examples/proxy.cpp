// A proxy: everything below /app/ is answered by a program that listens on a Unix socket, as if it stood here. Uploads,
// event streams and WebSockets pass as well; what rests costs two records.
//
//   proxy                   asks itself, and prints the answers
//   proxy ADDRESS TO        serves on ADDRESS what TO answers, until SIGTERM

#include <coir/http/client.h>
#include <coir/http/proxy.h>
#include <coir/runtime.h>
#include <coir/worker_stack.h>
#include <signal.h>
#include <stdio.h>

#include "local_site.h"

using namespace std::chrono_literals;
using namespace coir::http;

namespace {

struct Gateway {
  Forwarder forwarder;
  Upstreams upstream;
  ForwardRules rules;
};

void forward(Exchange& exchange) {
  auto& gateway = exchange.context<Gateway>();
  gateway.forwarder.forward(exchange, gateway.upstream.group(), gateway.rules);
}

void forward_app(Exchange& exchange) {
  auto& gateway = exchange.context<Gateway>();
  const std::string_view target = exchange.request().target;
  if (!target.starts_with("/app/")) return exchange.respond_status(404);
  // What the program is asked for: the target without "/app".
  gateway.forwarder.forward(exchange, gateway.upstream.group(), gateway.rules, target.substr(4));
}

void program(Exchange& exchange) {
  char text[256];
  const Request& request = exchange.request();
  exchange.respond(200, "text/plain",
                   coir::format(text, request.target, " for ", request.header("X-Forwarded-For"), ", who asked ",
                                request.header("X-Forwarded-Proto"), "://inner.example", "\n"));
}

std::expected<Server, coir::Error> serve(const coir::Address& address, Handler handler, void* context) {
  // Which names are right is for those to judge who are asked.
  static constexpr std::string_view kAnyHost[] = {"*"};
  auto server = Server::create({.handler = handler, .context = context, .allow_hosts = kAnyHost});
  auto listener = coir::TcpListener::listen(address);
  if (!listener) return std::unexpected(listener.error());
  if (auto added = server->add(std::move(*listener)); !added) return std::unexpected(added.error());
  if (auto started = server->start(); !started) return std::unexpected(started.error());
  return server;
}

int ask_itself() {
  const coir::Address inner = *coir::Address::parse("unix:@coir-example-proxy");
  auto app = serve(inner, program, nullptr);
  static auto forwarder = Forwarder::create();
  static auto upstream = Upstreams::create("unix:@coir-example-proxy");
  if (!app || !forwarder || !upstream) return 1;
  static Gateway gateway{std::move(*forwarder), std::move(*upstream), {.host = "inner.example"}};
  {
    const LocalSite site({.handler = forward_app, .context = &gateway});
    for (const char* const path : {"/app/status?full", "/elsewhere"}) {
      auto response = get(site.url(path), {.deadline = coir::Deadline::after(10s)});
      const auto text = response ? response->text() : std::unexpected(response.error());
      if (!text) return 1;
      coir::on_worker_stack(
          [&] { printf("%d %.*s", response->status(), static_cast<int>(text->size()), text->data()); });
    }
  }
  return app->stop(coir::Deadline::after(1s)) ? 0 : 1;
}

int serve_upstream(const coir::Address& address, std::string_view to) {
  auto forwarder = Forwarder::create();
  auto upstream = Upstreams::create(to);
  if (!forwarder || !upstream) return 1;
  Gateway gateway{std::move(*forwarder), std::move(*upstream), {}};
  auto server = serve(address, forward, &gateway);
  if (!server) return 1;
  return static_cast<int>(server->serve_until({SIGTERM, SIGINT}, 2s));
}

}  // namespace

int main(int count, char** words) {
  if (count == 1) return coir::run(ask_itself);
  const auto address = coir::Address::parse(words[1]);
  if (!address || count != 3) return fputs("usage: proxy [ADDRESS URL]\n", stderr), 2;
  return coir::run([&] { return serve_upstream(*address, words[2]); });
}
