// A page whose numbers move: a browser's EventSource follows a hub of events, and so does any number of others. Between two
// values a follower is the record of its connection.
//
//   live_values 8080     serves http://<this machine>:8080/ until Ctrl-C
//   live_values          has a client of its own follow three values, and ends

#include <coir/events.h>
#include <coir/every.h>
#include <coir/format.h>
#include <coir/http/routes.h>
#include <coir/nursery.h>
#include <coir/runtime.h>
#include <coir/signal.h>
#include <signal.h>
#include <stdio.h>

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
Outcome follow(const coir::Address& server) {
  auto stream = coir::TcpStream::connect(server, coir::Deadline::after(5s));
  if (!stream) return std::unexpected(stream.error());
  // It has missed what came behind the first.
  if (auto asked = stream->write("GET /values HTTP/1.1\r\nHost: here\r\nLast-Event-ID: 1\r\n\r\n"); !asked)
    return asked;
  char heard[1024];
  std::string_view text;
  while (text.find("id: 4\n") == text.npos || !text.ends_with("\n\n")) {
    const auto got = stream->read({heard + text.size(), sizeof heard - text.size()}, coir::Deadline::after(5s));
    if (!got) return std::unexpected(got.error());
    text = {heard, text.size() + *got};
  }
  text.remove_prefix(text.find("id: "));
  fwrite(text.data(), 1, text.size(), stdout);
  return {};
}

Outcome serve(const char* port) {
  EventHub values({.history_events = 100});
  auto app = routes(get<"/">(page), get<"/values">(values));
  auto server = Server::create(answered_by(app));
  char text[32];
  const auto at = coir::Address::parse(port != nullptr ? coir::format(text, "0.0.0.0:", port) : "127.0.0.1:0");
  if (!server) return std::unexpected(server.error());
  if (!at) {
    fprintf(stderr, "live_values: %s: %s\n", port, coir::describe(at.error()));
    return std::unexpected(coir::Error(coir::ErrorCode::invalid));
  }
  auto listener = coir::TcpListener::listen(*at);
  if (!listener) return std::unexpected(listener.error());
  const coir::Address address = listener->local_address();
  if (const auto added = server->add(std::move(*listener)); !added) return std::unexpected(added.error());
  if (auto started = server->start(); !started) return started;

  int number = 0;
  Outcome followed;
  if (port == nullptr) {
    while (number < 4) measure(values, ++number);
    followed = follow(address);
  } else {
    coir::Nursery sensors;
    auto sensor =
        sensors.spawn({.name = "sensor"}, [&] { return coir::every(1s, [&] { measure(values, ++number); }); });
    static_cast<void>(coir::wait_signal({SIGINT, SIGTERM}));
    static_cast<void>(sensor.cancel());
    static_cast<void>(sensor.await());
  }
  if (auto stopped = server->stop(coir::Deadline::after(5s)); !stopped) return stopped;
  return followed;
}

}  // namespace

int main(int argc, char** argv) {
  return coir::run([&] { return serve(argc > 1 ? argv[1] : nullptr); });
}
