#pragma once

#include <coir/http.h>

#include "monitor.h"

inline void show_page(coir::http::Exchange& exchange) {
  exchange.respond(200, "text/html; charset=utf-8",
                   "<!doctype html><title>station</title><h1 id=value>...</h1><script>\n"
                   "new EventSource('/readings').onmessage = event =>\n"
                   "  value.textContent = JSON.parse(event.data).celsius.toFixed(1) + ' \\u00b0C'\n"
                   "</script>\n");
}

inline void show_reading(Monitor& monitor, coir::http::Exchange& exchange) {
  const std::optional<Reading> newest = monitor.newest();
  if (!newest) return exchange.respond_status(503, "Retry-After: 1\r\n");
  char text[64];
  exchange.respond(200, "application/json", write_json(*newest, text), "Cache-Control: no-store\r\n");
}

// add_metrics adds the followers and the sensor's figures to those of coir.
inline void add_metrics(Monitor& monitor, coir::http::Metrics& metrics) {
  metrics.add(monitor.followers());
  metrics.add([&](coir::http::MetricsText& text) {
    const Monitor::Counts& counts = monitor.counts();
    write_counter(text, "sensor_readings_total", "Readings taken.", counts.taken.load());
    write_counter(text, "sensor_readings_failed_total", "Attempts without a reading.", counts.failed.load());
    write_counter(text, "sensor_readings_dropped_total", "Readings dropped at the full queue.", counts.dropped.load());
    const std::optional<Reading> newest = monitor.newest();
    const coir::http::LabelledFigure value{"station", newest ? newest->value : 0};
    if (newest) write_gauges(text, "sensor_celsius", "The newest reading.", "sensor", {&value, 1});
  });
}

// routes_of is the table of the station's answers. Monitor and metrics must outlive it:
//
//   GET /          a page that shows the readings as they come
//   GET /reading   the newest, as JSON; 503 before there is one
//   GET /readings  all readings from now on, as server-sent events
//   GET /metrics   counters, in the text format of Prometheus
inline auto routes_of(Monitor& monitor, coir::http::Metrics& metrics) {
  using namespace coir::http;
  return routes(get<"/">(show_page), get<"/reading">([&](Exchange& exchange) { show_reading(monitor, exchange); }),
                get<"/readings">(monitor.followers()), get<"/metrics">(metrics));
}
