// A long poll: the handler waits until there is news, for 30 seconds at most, and then answers. While it waits it keeps
// its fiber, and neither the buffer for what comes in nor that for the answer.

#include <coir/event.h>
#include <coir/fiber.h>
#include <coir/format.h>
#include <coir/http/client.h>
#include <coir/http/routes.h>
#include <coir/runtime.h>
#include <coir/select.h>
#include <coir/worker_stack.h>
#include <stdio.h>

#include "local_site.h"

using namespace std::chrono_literals;
using namespace coir::http;

namespace {

void wait_for(coir::Event& opened, Exchange& exchange) {
  exchange.release_buffer();
  const auto won =
      coir::select({coir::Case::opened(opened), exchange.client_gone(), exchange.stopping(), coir::Case::after(30s)});
  if (!won || won->index == 1) return;                       // nobody waits for the answer any more
  if (won->index != 0) return exchange.respond_status(204);  // ask again
  exchange.respond(200, "text/plain", "the door is open");
}

}  // namespace

int main() {
  coir::Event opened;
  auto app = routes(get<"/door">([&](Exchange& exchange) { wait_for(opened, exchange); }),
                    post<"/door">([&](Exchange& exchange) {
                      opened.set();
                      exchange.respond_status(204);
                    }));
  return coir::run([&] {
    const LocalSite site(answered_by(app));
    const std::string_view url = site.url("/door");
    auto news = coir::spawn({.name = "visitor"}, [&]() -> std::expected<int, coir::Error> {
      auto response = get(url, {.deadline = coir::Deadline::after(10s)});
      if (!response) return std::unexpected(response.error());
      const auto text = response->text();
      if (!text) return std::unexpected(text.error());
      coir::on_worker_stack([&] { printf("%.*s\n", static_cast<int>(text->size()), text->data()); });
      return response->status();
    });
    if (auto rung = post(url, {}, "text/plain"); !rung) return 1;
    const auto status = news.await();
    return status && *status == 200 ? 0 : 1;
  });
}
