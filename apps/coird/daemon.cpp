#include "daemon.h"

#include <signal.h>
#include <unistd.h>

#include <string_view>

#include "auth.h"
#include "last_end.h"

using coir::http::Exchange;
using coir::http::Method;

namespace {

#if COIR_TLS && COIR_SITE
bool admits(Daemon& daemon, Exchange& exchange) noexcept {
  return !daemon.credentials || is_admitted(exchange, *daemon.credentials, daemon.files ? &*daemon.files : nullptr);
}
#else
bool admits(Daemon&, Exchange&) noexcept {
  return true;
}
#endif

bool is_read(Exchange& exchange) noexcept {
  const Method method = exchange.request().method;
  if (method == Method::get || method == Method::head) return true;
  exchange.respond_status(405, "Allow: GET, HEAD\r\n");
  return false;
}

// shows_metrics tells whether a listener, for metrics alone or not, answers /metrics. Elsewhere it is a path like any
// other.
bool shows_metrics(const Daemon& daemon, bool for_metrics) noexcept {
  return !daemon.options->no_metrics && for_metrics == daemon.listeners.metrics_apart();
}

#if COIRD_GATEWAY
bool passes_on(Daemon& daemon, Exchange& exchange) noexcept {
  if (daemon.gateway && daemon.gateway->serve(exchange)) return true;
#if COIRD_SCRIPTS
  if (daemon.scripts && daemon.scripts->serve(exchange)) return true;
#endif
  return false;
}
#else
bool passes_on(Daemon&, Exchange&) noexcept {
  return false;
}
#endif

#if COIRD_MCP
// serves_mcp answers at the path of --mcp. If --mcp has tokens of its own, a request needs no others, else those of --auth.
bool serves_mcp(Daemon& daemon, Exchange& exchange) noexcept {
  if (daemon.mcp && daemon.mcp->tells_issuer(exchange.request().path)) {
    daemon.mcp->serve_metadata(exchange);
    return true;
  }
  if (!daemon.mcp || !daemon.mcp->owns(exchange.request().path)) return false;
  if (daemon.mcp->asks_token() || admits(daemon, exchange)) daemon.mcp->serve(exchange);
  return true;
}
#else
bool serves_mcp(Daemon&, Exchange&) noexcept {
  return false;
}
#endif

#if COIR_DASHBOARD
// shows_dashboard answers at the path of --dashboard, which has a login of its own and needs no --auth.
bool shows_dashboard(Daemon& daemon, Exchange& exchange) noexcept {
  if (!daemon.dashboard || !daemon.dashboard->owns(exchange.request().path)) return false;
  daemon.dashboard->serve(exchange);
  return true;
}
#else
bool shows_dashboard(Daemon&, Exchange&) noexcept {
  return false;
}
#endif

// write_reload adds these by the names that Prometheus gives to its own.
void write_reload(const Daemon& daemon, coir::http::MetricsText& text) noexcept {
  coir::http::write_gauge(text, "coir_config_last_reload_successful",
                          "Whether the last reload succeeded; 1 after the start.", daemon.reloaded.load() ? 1 : 0);
  coir::http::write_gauge(text, "coir_config_last_reload_success_timestamp_seconds",
                          "Time of the last successful reload, or of the start.", daemon.reloaded_at.load());
}

// tells_safe_mode answers all but /metrics in safe mode.
bool tells_safe_mode(const Daemon& daemon, Exchange& exchange) noexcept {
  if (daemon.safe == nullptr) return false;
  const std::string_view path = exchange.request().path;
  if (path == "/metrics" && shows_metrics(daemon, exchange.listener() == Listeners::kMetrics)) return false;
  char room[512];
  const int status = path == "/" || path == "/healthz" ? 200 : 503;
  if (is_read(exchange))
    exchange.respond(status, "text/plain; charset=utf-8", daemon.safe->page(room), "Cache-Control: no-store\r\n");
  return true;
}

}  // namespace

void watch_upstreams([[maybe_unused]] Daemon& daemon) noexcept {
#if COIRD_GATEWAY
  if (daemon.gateway) daemon.gateway->watch();
#endif
#if COIRD_SCRIPTS
  if (daemon.scripts) daemon.scripts->watch();
#endif
}

void add_metrics(Daemon& daemon) noexcept {
  if (daemon.files) daemon.metrics.add(*daemon.files);
#if COIRD_GATEWAY
  if (daemon.gateway) daemon.metrics.add(daemon.gateway->proxy());
#endif
#if COIRD_SCRIPTS
  if (daemon.scripts) {
    for (const auto& each : daemon.scripts->applications()) daemon.metrics.add(*each);
  }
#endif
  daemon.metrics.add(write_last_end);
  daemon.metrics.add([&daemon](coir::http::MetricsText& text) {
    write_gauge(text, "coir_safe_mode", "Whether coird runs in safe mode.", daemon.safe != nullptr ? 1 : 0);
    write_reload(daemon, text);
    daemon.board.write_metrics(text);
  });
}

void answer(Daemon& daemon, Exchange& exchange) {
  const bool for_metrics = exchange.listener() == Listeners::kMetrics;
  const std::string_view path = exchange.request().path;
  if (exchange.request().form == coir::http::Form::asterisk) {
    // The server as a whole, whether it has files or not.
    exchange.start(204).fixed("Allow: GET, HEAD, OPTIONS\r\n");
    static_cast<void>(exchange.begin_empty());
  } else if (tells_safe_mode(daemon, exchange)) {
    return;
  } else if (path == "/healthz") {
    if (is_read(exchange)) exchange.respond(200, "text/plain; charset=utf-8", "ok\n", "Cache-Control: no-store\r\n");
  } else if (!for_metrics && serves_mcp(daemon, exchange)) {
    return;
  } else if (!for_metrics && shows_dashboard(daemon, exchange)) {
    return;
  } else if (!for_metrics && !admits(daemon, exchange)) {
    return;
  } else if (path == "/metrics" && shows_metrics(daemon, for_metrics)) {
    if (!is_read(exchange)) return;
    daemon.metrics(exchange);
  } else if (!for_metrics && passes_on(daemon, exchange)) {
    return;
  } else if (daemon.files && !for_metrics) {
    daemon.files->serve(exchange);
  } else if (daemon.files) {
    daemon.files->refuse(exchange, 404);
  } else {
    exchange.respond_status(404);
  }
}

bool drain(Daemon& daemon) noexcept {
  if (daemon.drains.exchange(true)) return false;
  ::kill(::getpid(), SIGTERM);
  return true;
}
