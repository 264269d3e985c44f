// The metrics of FastCGI applications and of their servers. Declared in coir/http/fastcgi.h.
#include <span>

#include "fastcgi/fast_cgi.h"
#include "http/metrics_text.h"
#include "proxy/gateway_metrics.h"

namespace coir::http {
namespace {

GatewayGroup group_of(const FastCgi& application) noexcept {
  const FastCgiState& state = *application.state();
  const FastCgiOptions& options = state.options;
  return {.protocol = "fastcgi",
          .name = options.suffix.empty() ? options.prefix : options.suffix,
          .upstreams = &*state.upstreams};
}

// A figure is a counter, and the status that it counts, if it counts one of several.
struct Figure {
  std::string_view status;
  Atomic<std::uint64_t> FastCgiCounters::* counter;
};

void write_family(MetricsText& text, std::span<const FastCgi* const> applications, std::string_view name,
                  std::string_view help, std::span<const Figure> figures) noexcept {
  text.about(MetricsText::Kind::counter, name, help);
  for (const FastCgi* const each : applications) {
    for (const Figure& figure : figures) {
      begin_sample(text, name, group_of(*each));
      if (!figure.status.empty()) text.add({"\",status=\"", figure.status});
      text.sample("\"}", {}, (each->counters().*figure.counter).load(std::memory_order_relaxed));
    }
  }
}

void write_counters(MetricsText& text, std::span<const FastCgi* const> applications) noexcept {
  using Counters = FastCgiCounters;
  static constexpr Figure kAnswered[] = {{"", &Counters::answered}};
  static constexpr Figure kFailed[] = {
      {"502", &Counters::bad_gateway}, {"503", &Counters::unavailable}, {"504", &Counters::timed_out}};
  static constexpr Figure kRetried[] = {{"", &Counters::retried}};
  static constexpr Figure kCut[] = {{"", &Counters::cut}};
  static constexpr Figure kCancelled[] = {{"", &Counters::cancelled}};
  write_family(text, applications, "coir_fastcgi_answered_total", "Responses whose head came from an application.",
               kAnswered);
  write_family(text, applications, "coir_fastcgi_failed_total",
               "Requests that no application answered, by what the client was told.", kFailed);
  write_family(text, applications, "coir_fastcgi_retried_total", "Requests tried again on another connection.",
               kRetried);
  write_family(text, applications, "coir_fastcgi_cut_total", "Responses that an application did not end.", kCut);
  write_family(text, applications, "coir_fastcgi_cancelled_total", "Requests aborted because their client had gone.",
               kCancelled);
}

}  // namespace

void write_gateway_metrics(MetricsText& text, const Proxy* proxy,
                           std::span<const FastCgi* const> applications) noexcept {
  const auto at = [&](std::size_t index) { return group_of(*applications[index]); };
  write_gateway_metrics(text, proxy, GatewayGroups{applications.size(), at});
  if (!applications.empty()) write_counters(text, applications);
}

void each_upstream(const Proxy* proxy, std::span<const FastCgi* const> applications,
                   Callable<void(const UpstreamInfo& server)> visit) noexcept {
  const auto at = [&](std::size_t index) { return group_of(*applications[index]); };
  each_upstream(proxy, GatewayGroups{applications.size(), at}, visit);
}

}  // namespace coir::http
