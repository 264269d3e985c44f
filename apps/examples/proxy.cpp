// Answers that are others': paths below /app/ are answered by another server, as if it were here, and those below /php/
// by a FastCGI application, such as php-fpm. Uploads, event streams and WebSockets pass as well; one that rests costs two
// records.
//
//   proxy                      asks itself, and prints the answers
//   proxy ADDRESS TO [PHP]     serves on ADDRESS what TO answers, and below /php/ what PHP answers, until SIGTERM

#include <coir/config.h>
#include <coir/http.h>
#include <coir/http/client.h>
#include <coir/http/proxy.h>
#include <coir/runtime.h>
#include <coir/worker_stack.h>
#include <stdio.h>
#if COIR_FASTCGI
#include <coir/http/fastcgi.h>
#endif

#include "local_site.h"

using namespace std::chrono_literals;
using namespace coir::http;

namespace {

// Which names are right is for the servers behind to judge.
constexpr std::string_view kAnyHost[] = {"*"};

#if COIR_FASTCGI
FastCgi scripts(std::string_view address) {
  return FastCgi{address, {.prefix = "/php"}};
}
#else
auto scripts(std::string_view) {
  return [](Exchange& exchange) { exchange.respond_status(502); };
}
#endif

void program(Exchange& exchange) {
  char text[256];
  const Request& request = exchange.request();
  exchange.respond(200, "text/plain",
                   coir::format(text, request.target, " for ", request.header("X-Forwarded-For"), ", who asked ",
                                request.header("X-Forwarded-Proto"), "://inner.example", "\n"));
}

int ask_itself() {
  const LocalSite inner({.handler = program, .allow_hosts = kAnyHost});
  // The path of the server's URL, "/", takes the place of the prefix.
  auto app = routes(
      any<"/app/{path...}">(Proxy{{inner.url("/"), inner.url("/")}, {.prefix = "/app", .host = "inner.example"}}),
      any<"/php/{path...}">(scripts("unix:@coir-example-no-application")));
  if (!app.problem().empty()) return 1;
  const LocalSite site(answered_by(app));
  for (const char* const path : {"/app/status?full", "/php/index.php", "/elsewhere"}) {
    auto response = get(site.url(path), {.deadline = coir::Deadline::after(10s)});
    const auto text = response ? response->text() : std::unexpected(response.error());
    if (!text) return 1;
    coir::on_worker_stack([&] { printf("%d %.*s", response->status(), static_cast<int>(text->size()), text->data()); });
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  if (count == 1) return coir::run(ask_itself);
  if (count < 3) return fputs("usage: proxy [ADDRESS URL [FASTCGI]]\n", stderr), 2;
  auto app = routes(any<"/php/{path...}">(scripts(count > 3 ? words[3] : "unix:@coir-example-no-application")),
                    any<"/{path...}">(Proxy{words[2]}));
  return serve({.name = "proxy", .listen = words[1], .server = {.allow_hosts = kAnyHost}, .drain_timeout = 2s}, app);
}
