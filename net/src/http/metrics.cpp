#include <coir/config.h>
#include <coir/detail/fatal.h>
#include <coir/http/metrics.h>
#include <coir/http/server.h>
#include <coir/ledger.h>
#include <coir/memory_watch.h>
#include <coir/net/log_line.h>
#include <coir/program.h>
#include <string.h>

#include <algorithm>
#include <iterator>

#include "http/connection/pressure_steps.h"
#include "http/metrics_text.h"
#include "http/process_metrics.h"
#include "http/session/engine.h"
#include "http/session/session.h"

#if COIR_TLS
#include <coir/tls.h>
#endif

namespace coir::http {
namespace {

using Kind = MetricsText::Kind;

#if COIR_NO_ASYNC
void write_runtime(MetricsText&) noexcept {}
#else
void write_runtime(MetricsText& text) noexcept {
  const RuntimeStats now = stats();
  text.one(Kind::gauge, "coir_workers", "Threads that run fibers.", now.workers);
  text.one(Kind::gauge, "coir_fibers", "Fibers alive.", now.fibers_alive);
  text.one(Kind::counter, "coir_fibers_spawned_total", "Fibers started.", now.fibers_spawned);
  text.one(Kind::counter, "coir_switches_total", "Switches from one fiber to another.", now.switches);
  text.one(Kind::counter, "coir_steals_total", "Times that a worker took fibers from another.", now.steals);
  text.one(Kind::counter, "coir_polls_total", "Times that the kernel was asked for readiness.", now.polls);
  text.one(Kind::gauge, "coir_fd_waits", "Fibers and idle connections that wait for a descriptor.", now.fd_waits);
  text.one(Kind::gauge, "coir_timers", "Timers armed.", now.timers_armed);
  text.one(Kind::gauge, "coir_stacks_used", "Stacks ever taken from the arena.", now.stacks_used);
  text.one(Kind::gauge, "coir_stacks_guarded", "Stacks used that have a guard of their own.", now.stacks_guarded);
  text.one(Kind::gauge, "coir_stacks_pooled", "Stacks unused and kept resident.", now.stacks_pooled);
  text.state("coir_guard_mode", "The weakest protection of stacks in use.", "mode", now.guard_mode);
  text.state("coir_poller", "How the kernel is asked for readiness.", "kind", now.poller);
}
#endif

void write_server(MetricsText& text, Engine& engine) noexcept {
  const ServerGauges now = engine.gauges();
  const ServerCounters& all = engine.counters;
  const auto read = [](const Atomic<std::uint64_t>& counter) { return counter.load(std::memory_order_relaxed); };
  text.about(Kind::gauge, "coir_http_connections", "Connections by what they are doing.");
  text.sample("coir_http_connections", "{state=\"idle\"}", now.idle);
  text.sample("coir_http_connections", "{state=\"active\"}", now.active);
  text.sample("coir_http_connections", "{state=\"waiting\"}", now.waiting);
  text.sample("coir_http_connections", "{state=\"kept\"}", now.kept);
  text.one(Kind::gauge, "coir_http_connections_open", "Connections held.", now.open);
  text.one(Kind::gauge, "coir_http_connections_max", "Connections that may be held.", engine.options.max_connections);
  text.one(Kind::counter, "coir_http_connections_accepted_total", "Connections accepted.", read(all.accepted));
  text.about(Kind::counter, "coir_http_connections_closed_total",
             "Connections closed for a reason of the server's own.");
  text.sample("coir_http_connections_closed_total", "{reason=\"refused\"}", read(all.refused));
  text.sample("coir_http_connections_closed_total", "{reason=\"limited\"}", read(all.limited_connections));
  text.sample("coir_http_connections_closed_total", "{reason=\"evicted\"}", read(all.evicted));
  text.sample("coir_http_connections_closed_total", "{reason=\"expired\"}", read(all.expired));
  text.sample("coir_http_connections_closed_total", "{reason=\"evicted_slow\"}", read(all.evicted_slow));
  text.one(Kind::counter, "coir_http_accept_pauses_total", "Times that the kernel was out of descriptors or memory.",
           read(all.accept_pauses));
  constexpr std::string_view kClasses[] = {"{class=\"1xx\"}", "{class=\"2xx\"}", "{class=\"3xx\"}", "{class=\"4xx\"}",
                                           "{class=\"5xx\"}"};
  text.one(Kind::counter, "coir_http_requests_limited_total", "Requests answered 429: one client made too many.",
           read(all.limited_requests));
  text.about(Kind::counter, "coir_http_responses_total", "Responses begun, by class of status.");
  for (std::size_t i = 0; i < std::size(kClasses); ++i) {
    text.sample("coir_http_responses_total", kClasses[i], read(all.responses[i]));
  }
  text.about(Kind::histogram, "coir_http_request_duration_seconds",
             "Time from the end of a request's head to the end of its answer.");
  text.durations("coir_http_request_duration_seconds", all.durations, {});
  text.one(Kind::counter, "coir_http_received_bytes_total", "Bytes read from clients.", read(all.bytes_received));
  text.one(Kind::counter, "coir_http_sent_bytes_total", "Bytes written to clients.", read(all.bytes_sent));
}

#if COIR_TLS
void write_tls(MetricsText& text) noexcept {
  const TlsCounters& all = tls_counters();
  const auto read = [](const Atomic<std::uint64_t>& counter) { return counter.load(std::memory_order_relaxed); };
  text.one(Kind::gauge, "coir_tls_sessions", "Sessions established.", read(all.sessions));
  text.one(Kind::gauge, "coir_tls_handshakes_under_way", "Handshakes under way.", read(all.under_way));
  text.about(Kind::counter, "coir_tls_handshakes_total", "Handshakes by their end.");
  text.sample("coir_tls_handshakes_total", "{end=\"completed\"}", read(all.completed));
  text.sample("coir_tls_handshakes_total", "{end=\"failed\"}", read(all.failed));
  text.sample("coir_tls_handshakes_total", "{end=\"refused\"}", read(all.refused));
  text.one(Kind::counter, "coir_tls_resumed_total", "Handshakes completed that took up an earlier session.",
           read(all.resumed));
  text.one(Kind::gauge, "coir_time_valid", "Whether the clock is past the time of the build.", time_valid() ? 1 : 0);
}
#else
void write_tls(MetricsText&) noexcept {}
#endif

void write_memory(MetricsText& text) noexcept {
  struct Figure {
    std::string_view name, help;
    std::size_t (Account::*read)() const noexcept;
  };
  constexpr Figure kFigures[] = {
      {"coir_memory_bytes", "Memory charged to the ledger, by account.", &Account::used},
      {"coir_memory_high_water_bytes", "The most that was ever charged.", &Account::high_water},
      {"coir_memory_ceiling_bytes", "The most that may be charged.", &Account::ceiling},
  };
  const auto each = [](auto&& visit) {
    visit(Ledger::total());
    for (const Account* account = Ledger::accounts(); account != nullptr; account = account->next()) visit(*account);
  };
  const auto sample = [&text](std::string_view name, const Account& account, std::uint64_t value) {
    char label[64] = "{account=\"";
    const std::size_t opened = strlen(label);
    const std::size_t size = std::min(strlen(account.name()), sizeof label - opened - 3);
    memcpy(label + opened, account.name(), size);
    memcpy(label + opened + size, "\"}", 2);
    text.sample(name, {label, opened + size + 2}, value);
  };
  for (const Figure& figure : kFigures) {
    text.about(Kind::gauge, figure.name, figure.help);
    each([&](const Account& account) {
      if (const std::size_t value = (account.*figure.read)(); value != SIZE_MAX) sample(figure.name, account, value);
    });
  }
  text.about(Kind::counter, "coir_memory_refusals_total", "Charges that a ceiling refused.");
  each([&](const Account& account) { sample("coir_memory_refusals_total", account, account.refusals()); });
  struct Step {
    std::string_view label;
    const PressureStep& step;
  };
  const Step steps[] = {{"{step=\"trim\"}", pressure::trim},
                        {"{step=\"evict\"}", pressure::evict},
                        {"{step=\"shed\"}", pressure::shed},
                        {"{step=\"pause\"}", pressure::pause}};
  text.about(Kind::counter, "coir_memory_pressure_total", "Steps taken for want of memory.");
  for (const Step& one : steps) text.sample("coir_memory_pressure_total", one.label, one.step.taken());
}

}  // namespace

void Metrics::put(const Entry& entry) noexcept {
  if (count_ == kMost) coir::detail::fatal("more than Metrics::kMost parts are added to a Metrics");
  entries_[count_++] = entry;
}

// All objects of one kind are written where the first of them was added.
void Metrics::write_added(MetricsText& text) const noexcept {
  const std::span all(entries_, count_);
  for (const Entry& entry : all) {
    if (entry.call) {
      entry.call(text);
      continue;
    }
    void* objects[kMost];
    std::size_t count = 0;
    const auto write = entry.part.write;
    for (const Entry& other : all) {
      if (!other.call && other.part.write == write) {
        if (count == 0 && &other != &entry) break;
        objects[count++] = other.part.object;
      }
    }
    if (count != 0) write(text, {objects, count});
  }
}

void Metrics::operator()(Exchange& exchange) const noexcept {
  ResponseHead& head = exchange.start(200);
  head.field("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
  head.fixed("Cache-Control: no-store\r\n");
  if (!exchange.begin_chunked()) return;
  MetricsText text(exchange);
  write_runtime(text);
  write_server(text, Session::of(exchange).engine());
  write_tls(text);
  write_memory(text);
  write_added(text);
  text.one(Kind::counter, "coir_log_lines_dropped_total", "Lines of the log dropped, for nobody read them.",
           log_lines_dropped());
  text.one(Kind::counter, "coir_log_lines_left_out_total", "Lines of the log left out, for their source has too many.",
           log_lines_left_out());
  write_process(text);
  text.end();
}

}  // namespace coir::http
