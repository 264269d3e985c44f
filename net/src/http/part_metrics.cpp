// metrics_part of what is counted below the server: of coir/http/files.h, coir/events.h and coir/websocket.h.
#include <coir/config.h>
#include <coir/http/files.h>
#include <coir/http/metrics.h>

#if COIR_STREAMS
#include <coir/events.h>
#include <coir/websocket.h>
#endif

namespace coir::http {
namespace {

// sum adds up a figure of all objects.
template <class Part, class Figure>
std::uint64_t sum(std::span<void* const> objects, Figure (Part::*figure)() const noexcept) noexcept {
  std::uint64_t all = 0;
  for (void* const object : objects) all += (static_cast<const Part*>(object)->*figure)();
  return all;
}

void write_files(MetricsText& text, std::span<void* const> trees) noexcept {
  write_gauge(text, "coir_http_file_cache_bytes", "Content of small files kept in memory.",
              sum(trees, &FileTree::cached_bytes));
}

#if COIR_STREAMS
void write_events(MetricsText& text, std::span<void* const> hubs) noexcept {
  write_gauge(text, "coir_event_subscribers", "Clients that follow events of a hub.",
              sum(hubs, &EventHub::subscribers));
  write_counter(text, "coir_event_subscribers_dropped_total", "Subscribers disconnected behind the history.",
                sum(hubs, &EventHub::dropped));
}

void write_sockets(MetricsText& text, std::span<void* const> hubs) noexcept {
  write_gauge(text, "coir_websockets", "WebSockets of hubs that are open.", sum(hubs, &detail::SocketHub::sockets));
  write_counter(text, "coir_websockets_dropped_total", "WebSockets disconnected because their clients were too slow.",
                sum(hubs, &detail::SocketHub::dropped));
}
#endif

}  // namespace

MetricsPart metrics_part(FileTree& files) noexcept {
  return {&files, write_files};
}

#if COIR_STREAMS
MetricsPart metrics_part(EventHub& hub) noexcept {
  return {&hub, write_events};
}

MetricsPart detail::metrics_part(SocketHub& hub) noexcept {
  return {&hub, write_sockets};
}
#endif

}  // namespace coir::http
