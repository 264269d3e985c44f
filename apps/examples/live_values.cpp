// A page whose numbers move: a browser's EventSource follows a hub of events, and so does any number of others. Between two
// values a follower is the record of its connection.
//
//   live_values :8080    serves http://<this machine>:8080/ until SIGTERM
//   live_values          has a client of its own follow three values, and ends

#include <coir/events.h>
#include <coir/every.h>
#include <coir/http.h>
#include <coir/http/client.h>
#include <coir/runtime.h>
#include <coir/worker_stack.h>
#include <stdio.h>

#include "local_site.h"

using namespace std::chrono_literals;
using namespace coir::http;

namespace {

using Outcome = std::expected<void, coir::Error>;

void page(Exchange& exchange) {
  exchange.respond(200, "text/html; charset=utf-8",
                   "<!doctype html><title>live</title><h1 id=value>...</h1><script>\n"
                   "new EventSource('/values').onmessage = e => value.textContent = e.data + ' \\u00b0C'\n"
                   "</script>\n");
}

// measure publishes what a sensor says. Its number is the event's id, so that a client that was away misses nothing.
void measure(EventHub& values, int number) {
  char id[16], text[16];
  static_cast<void>(
      values.publish({.data = coir::format(text, 20 + number % 5, ".5"), .id = coir::format(id, number)}));
}

// follow prints what a client hears, until it has heard three values.
Outcome follow(const LocalSite& site) {
  auto client = Client::create();
  if (!client) return std::unexpected(client.error());
  // It has missed what came behind the first.
  auto events = EventClient::create(*client, {.url = site.url("/values"), .last_id = "1"});
  if (!events) return std::unexpected(events.error());
  for (int heard = 0; heard < 3; ++heard) {
    const auto event = events->next(coir::Deadline::after(5s));
    if (!event) return std::unexpected(event.error());
    coir::on_worker_stack([&] {
      printf("%.*s: %.*s\n", static_cast<int>(event->id.size()), event->id.data(), static_cast<int>(event->data.size()),
             event->data.data());
    });
  }
  return {};
}

}  // namespace

int main(int count, char** words) {
  EventHub values({.history_events = 100});
  auto app = routes(get<"/">(page), get<"/values">(values));
  int number = 0;
  if (count > 1) {
    return serve({.name = "live_values",
                  .listen = words[1],
                  .jobs =
                      [&](coir::Nursery& jobs) {
                        jobs.start({.name = "sensor"},
                                   [&] { return coir::every(1s, [&] { measure(values, ++number); }); });
                      }},
                 app);
  }
  return coir::run([&] {
    const LocalSite site(answered_by(app));
    while (number < 4) measure(values, ++number);
    return follow(site);
  });
}
