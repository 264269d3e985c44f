#include "routes.h"

#include <coir/format.h>
#include <coir/ledger.h>
#include <coir/memory_watch.h>

using coir::http::Exchange;

void show_page(Exchange& exchange) {
  exchange.respond(200, "text/html; charset=utf-8",
                   "<!doctype html><title>station</title><h1 id=value>...</h1><script>\n"
                   "new EventSource('/readings').onmessage = event =>\n"
                   "  value.textContent = JSON.parse(event.data).celsius.toFixed(1) + ' \\u00b0C'\n"
                   "</script>\n");
}

void show_reading(Monitor& monitor, Exchange& exchange) {
  const std::optional<Reading> newest = monitor.newest();
  if (!newest) return exchange.respond_status(503, "Retry-After: 1\r\n");
  char text[64];
  exchange.respond(200, "application/json", write_json(*newest, text), "Cache-Control: no-store\r\n");
}

void show_metrics(Monitor& monitor, Exchange& exchange) {
  const Monitor::Counts& counts = monitor.counts();
  coir::Formatter out(exchange.scratch());
  const auto metric = [&](std::string_view name, std::string_view type, std::uint64_t value) {
    out.add("# TYPE sensor_", name, " ", type, "\nsensor_", name, " ", value, "\n");
  };
  metric("readings_total", "counter", counts.taken.load());
  metric("readings_failed_total", "counter", counts.failed.load());
  metric("readings_dropped_total", "counter", counts.dropped.load());
  metric("followers", "gauge", monitor.followers().subscribers());
  metric("followers_fallen_off_total", "counter", monitor.followers().dropped());
  metric("connections", "gauge", monitor.server->gauges().open);
  metric("ledger_bytes", "gauge", coir::Ledger::total().used());
  metric("resident_bytes", "gauge", coir::MemoryWatch::resident());
  if (const auto newest = monitor.newest()) {
    out.add("# TYPE sensor_celsius gauge\nsensor_celsius ", coir::fixed(newest->value, 3), "\n");
  }
  exchange.respond(200, "text/plain; version=0.0.4", out.text(), "Cache-Control: no-store\r\n");
}
