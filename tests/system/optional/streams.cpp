#include <coir/http/event_stream.h>
#include <coir/http/feed.h>

using namespace coir;
using namespace coir::http;

extern "C" void use_streams(Exchange& exchange) {
  if (auto feed = Feed::create()) {
    static_cast<void>(feed->publish({.data = "21.5", .type = "temperature", .id = "1", .retry_ms = {}}));
    return feed->subscribe(exchange);
  }
  auto stream = EventStream::open(exchange);
  while (stream && stream->send({.data = "21.5", .type = {}, .id = {}, .retry_ms = {}}) &&
         stream->pause(Deadline::after(std::chrono::seconds(1)))) {
  }
}
