#pragma once

#include <coir/http/routes.h>

#include "monitor.h"

void show_page(coir::http::Exchange& exchange);
void show_reading(Monitor& monitor, coir::http::Exchange& exchange);
void show_metrics(Monitor& monitor, coir::http::Exchange& exchange);

// routes_of is the table of the station's answers. The monitor must outlive it:
//
//   GET /          a page that shows the readings as they come
//   GET /reading   the newest, as JSON; 503 before there is one
//   GET /readings  all readings from now on, as server-sent events
//   GET /metrics   counters, in the text format of Prometheus
inline auto routes_of(Monitor& monitor) {
  using namespace coir::http;
  return routes(get<"/">(show_page), get<"/reading">([&](Exchange& exchange) { show_reading(monitor, exchange); }),
                get<"/readings">(monitor.followers()),
                get<"/metrics">([&](Exchange& exchange) { show_metrics(monitor, exchange); }));
}
