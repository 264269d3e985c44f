// Events that a handler sends from its own fiber, top to bottom: the countdown of one client, which nobody else hears.
// A client that follows it and loses its connection goes on where it was.

#include <coir/events.h>
#include <coir/format.h>
#include <coir/http/wire/query.h>
#include <coir/runtime.h>
#include <coir/worker_stack.h>
#include <stdio.h>

#include "local_site.h"

using namespace std::chrono_literals;
using namespace coir::http;

namespace {

void count_down(Exchange& exchange) {
  // Read before open(), with which the request is gone.
  const auto last = parse_integer(exchange.request().header("Last-Event-ID"));
  auto stream = EventStream::open(exchange, {.retry = 1ms});
  if (!stream) return;  // it has been answered
  for (int left = last ? static_cast<int>(*last) - 1 : 5; left >= 0; --left) {
    char number[8];
    const std::string_view text = coir::format(number, left);
    if (!stream->send({.data = left > 0 ? text : "lift off", .id = text})) return;  // the client has gone
    if (left == 3) return;                                                          // here the connection is lost
    if (!stream->pause(coir::Deadline::after(1ms))) return;
  }
}

}  // namespace

int main() {
  return coir::run([] {
    const LocalSite site({.handler = count_down});
    auto client = Client::create();
    if (!client) return 1;
    auto events = EventClient::create(*client, {.url = site.url("/countdown")});
    if (!events) return 1;
    for (;;) {
      const auto event = events->next(coir::Deadline::after(10s));
      if (!event) return 1;
      coir::on_worker_stack([&] { printf("%.*s\n", static_cast<int>(event->data.size()), event->data.data()); });
      if (event->data == "lift off") break;
    }
    coir::on_worker_stack(
        [&] { printf("by %llu connections\n", static_cast<unsigned long long>(events->attempts())); });
    return 0;
  });
}
