#pragma once

#include <coir/http/server.h>

#include "monitor.h"

// serve_routes has a server with these options answer from the monitor, which outlives it:
//
//   GET /          a page that shows the readings as they come
//   GET /reading   the newest, as JSON; 503 before there is one
//   GET /readings  all that come from now on, as server-sent events
//   GET /metrics   counters, in the text format of Prometheus
void serve_routes(coir::http::ServerOptions& options, Monitor& monitor) noexcept;
