// The metrics of FastCGI applications and of their servers. Declared in coir/http/fastcgi.h.
#include <iterator>

#include "fastcgi/fast_cgi.h"

namespace coir::http {
namespace {

struct Counted {
  std::string_view family;
  std::string_view help;
  std::string_view status;
  Atomic<std::uint64_t> FastCgiCounters::* counter;
};

constexpr std::string_view kFailed = "coir_fastcgi_failed_total";
constexpr std::string_view kFailedHelp = "Requests that no application answered, by what the client was told.";
constexpr Counted kCounted[] = {
    {"coir_fastcgi_answered_total", "Responses whose head came from an application.", "", &FastCgiCounters::answered},
    {kFailed, kFailedHelp, "500", &FastCgiCounters::unspooled},
    {kFailed, kFailedHelp, "502", &FastCgiCounters::bad_gateway},
    {kFailed, kFailedHelp, "503", &FastCgiCounters::unavailable},
    {kFailed, kFailedHelp, "504", &FastCgiCounters::timed_out},
    {"coir_fastcgi_retried_total", "Requests tried again on another connection.", "", &FastCgiCounters::retried},
    {"coir_fastcgi_cut_total", "Responses that an application did not end.", "", &FastCgiCounters::cut},
    {"coir_fastcgi_cancelled_total", "Requests aborted because their client had gone.", "",
     &FastCgiCounters::cancelled},
};

}  // namespace

std::size_t FastCgiState::figures() const noexcept {
  return std::size(kCounted);
}

GatewayFigure FastCgiState::figure(std::size_t number) const noexcept {
  const Counted& one = kCounted[number];
  return {one.family, one.help, one.status, (counters.*one.counter).load(std::memory_order_relaxed)};
}

void FastCgiState::each_group(const Callable<void(const GatewayGroup& group)>& visit) noexcept {
  if (!upstreams) return;
  visit({.protocol = "fastcgi",
         .name = options.suffix.empty() ? options.prefix : options.suffix,
         .upstreams = &*upstreams});
}

MetricsPart metrics_part(const FastCgi& application) noexcept {
  return metrics_part(static_cast<GatewayPart*>(application.state()));
}

void each_upstream(const FastCgi& application, Callable<void(const UpstreamInfo& server)> visit) noexcept {
  each_upstream(static_cast<GatewayPart*>(application.state()), visit);
}

}  // namespace coir::http
