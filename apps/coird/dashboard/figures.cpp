#include "figures.h"

#include <coir/deadline.h>
#include <coir/format.h>
#include <coir/memory_watch.h>

#include <algorithm>

#include "../daemon.h"

#if !COIR_NO_ASYNC
#include <coir/inspect.h>
#endif

namespace {

using coir::http::DurationHistogram;

constexpr std::int64_t kSecondNs = 1'000'000'000;

// bound_of is the upper end of the bucket that holds the duration at a share, in 1/1000, of all; 0: it is in the last one.
std::uint32_t bound_of(std::span<const std::uint64_t> counts, std::uint64_t all, std::uint64_t share) noexcept {
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < std::size(DurationHistogram::kBoundsMicros); ++i) {
    below += counts[i];
    if (below * 1000 >= all * share) return DurationHistogram::kBoundsMicros[i];
  }
  return 0;
}

void add_bound(coir::Formatter& out, std::uint32_t micros) noexcept {
  if (micros == 0) {
    out.add("over 10 s");
  } else if (micros < 1000) {
    out.add("0.", micros / 100, " ms");
  } else if (micros % 1000 != 0) {
    out.add(coir::fixed(micros / 100, 1), " ms");
  } else {
    out.add(micros / 1000, " ms");
  }
}

}  // namespace

Figures::Figures(Daemon& daemon) noexcept : daemon_(daemon), began_ns_(coir::monotonic_ns()) {}

Figures::Counts Figures::now() const noexcept {
  const auto& counters = daemon_.server->counters();
  Counts counts;
  for (const auto& each : counters.responses) counts.requests += each.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < kBuckets; ++i) counts.durations[i] = counters.durations.count(i);
  return counts;
}

void Figures::step() noexcept {
  window_[steps_++ % kWindow] = now();
}

void Figures::tell(FigureTexts& texts) const noexcept {
  const std::int64_t up = (coir::monotonic_ns() - began_ns_) / kSecondNs;
  texts.add("uptime", "Uptime", up / 86'400, " d ", coir::zeros(up / 3'600 % 24, 2), ":", coir::zeros(up / 60 % 60, 2),
            ":", coir::zeros(up % 60, 2));
  const auto gauges = daemon_.server->gauges();
  texts.add("connections", "Connections", gauges.open, " of ", daemon_.server->options().max_connections);
  texts.add("kinds", "idle, active, waiting, streams", gauges.idle, ", ", gauges.active, ", ", gauges.waiting, ", ",
            gauges.kept);
  tell_requests(texts);
  tell_states(texts);
  tell_sensors(texts);
  texts.add("resident", "Resident memory", coir::MemoryWatch::resident() / 1024, " KB");
}

void Figures::tell_requests(FigureTexts& texts) const noexcept {
  Counts counts = now();
  Counts begin;  // of the window
  std::size_t seconds = 0;
  if (steps_ > 1) {
    seconds = std::min(steps_, kWindow) - 1;
    begin = window_[(steps_ - 1 - seconds) % kWindow];
  }
  char rate[32] = {};
  const auto rate_text = seconds == 0
                             ? std::string_view()
                             : coir::format(rate, ", ", (counts.requests - begin.requests) / seconds, " a second");
  texts.add("requests", "Requests", counts.requests, rate_text);
  texts.add("refused", "Connections refused", daemon_.server->counters().refused.load(std::memory_order_relaxed));
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < kBuckets; ++i) all += counts.durations[i] -= begin.durations[i];
  char room[64];
  coir::Formatter latency(room);
  if (all == 0) {
    latency.add("no request");
  } else {
    add_bound(latency, bound_of(counts.durations, all, 500));
    latency.add(", ");
    add_bound(latency, bound_of(counts.durations, all, 990));
  }
  texts.add("latency", "Latency of 50 %, 99 %, up to", latency.text());
}

#if COIR_NO_ASYNC
void Figures::tell_states(FigureTexts&) const noexcept {}
#else
void Figures::tell_states(FigureTexts& texts) const noexcept {
  static constexpr std::size_t kMostInfos = 64;
  static coir::FiberInfo infos[kMostInfos];  // too large for a stack
  std::size_t counts[3] = {};
  const std::size_t all = coir::list_fibers(infos);
  for (const coir::FiberInfo& each : std::span(infos).first(std::min(all, kMostInfos)))
    ++counts[static_cast<std::size_t>(each.state)];
  char room[32] = {};
  const auto more = all > kMostInfos ? coir::format(room, ", and ", all - kMostInfos, " more") : std::string_view();
  texts.add("fibers", "Fibers running, runnable, parked", counts[1], ", ", counts[0], ", ", counts[2], more);
}
#endif

void Figures::tell_sensors(FigureTexts& texts) const noexcept {
  coir::port::Thermometer sensors[3];
  const std::size_t count = daemon_.board.temperatures(sensors);
  char room[128];
  coir::Formatter text(room);
  for (const auto& each : std::span(sensors).first(count))
    text.add(text.text().empty() ? "" : ", ", each.name, " ", coir::fixed(each.millidegrees / 100, 1), " °C");
  texts.add("temperature", "Temperature", count == 0 ? "no sensor" : text.text());
}
