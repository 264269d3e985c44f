#include <coir/events.h>

using namespace coir;
using namespace coir::http;

extern "C" void use_streams(Exchange& exchange) {
  EventHub hub;
  if (hub.publish({.data = "21.5", .type = "temperature", .id = "1", .retry_ms = {}})) return hub(exchange);
  auto stream = EventStream::open(exchange);
  while (stream && stream->send({.data = "21.5", .type = {}, .id = {}, .retry_ms = {}}) &&
         stream->pause(Deadline::after(std::chrono::seconds(1)))) {
  }
}
