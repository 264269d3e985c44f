#pragma once

// A page of counters and gauges, for Prometheus.
//
//   EventHub ticks;
//   Atomic<std::uint64_t> failed = 0;
//   Metrics metrics;
//   metrics.add(ticks);
//   metrics.add([&](MetricsText& text) {
//     write_counter(text, "sensor_failed_total", "Readings that failed.", failed.load());
//   });
//   auto app = routes(get<"/ticks">(ticks), get<"/metrics">(metrics));

#include <coir/callable.h>
#include <coir/http/exchange.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

namespace coir {
struct LastEnd;
}  // namespace coir

namespace coir::http {

class MetricsText;

// MetricsPart is what Metrics knows of a part: `write` gets all objects that were added with it, so that each family of
// samples is written once.
struct MetricsPart {
  void* object = nullptr;
  void (*write)(MetricsText& text, std::span<void* const> objects) noexcept = nullptr;
};

// Metrics answers with the state of the process in the text format of Prometheus, version 0.0.4: the runtime's fibers,
// stacks and waits, the connections, responses and bytes of the server that it answers for, TLS, the ledger, what was
// added, and the process itself. It is mounted like any answer.
class Metrics {
 public:
  static constexpr std::size_t kMost = 16;

  // add has the page show what a part counts: a FileTree, EventHub, WebSocketHub, Proxy or FastCgi, which must outlive
  // the requests; or what a callable writes, by write_gauge and its like, which is kept as Callable tells. Before the
  // first request. More than kMost end the process with a line.
  template <class Part>
  void add(Part&& part) noexcept {
    if constexpr (std::is_invocable_v<Part&, MetricsText&>) {
      put({.call = std::forward<Part>(part), .part = {}});
    } else {
      static_assert(std::is_lvalue_reference_v<Part>, "give the part a name: it has to outlive the requests");
      put({.call = {}, .part = metrics_part(part)});
    }
  }

  void operator()(Exchange& exchange) const noexcept;

 private:
  struct Entry {
    Callable<void(MetricsText& text)> call;  // empty: `part` counts
    MetricsPart part;
  };
  void put(const Entry& entry) noexcept;
  void write_added(MetricsText& text) const noexcept;

  Entry entries_[kMost];
  std::size_t count_ = 0;
};

// write_end_metrics, in end_metrics.cpp, adds how the last run ended, and how many did so, as EndRecord::begin has found them.
void write_end_metrics(MetricsText& text, const LastEnd& last) noexcept;

// write_gauge and write_counter, in end_metrics.cpp, add one figure of a program's own. A counter's name ends in _total.
void write_gauge(MetricsText& text, std::string_view name, std::string_view help, std::uint64_t value) noexcept;
void write_counter(MetricsText& text, std::string_view name, std::string_view help, std::uint64_t value) noexcept;

// LabelledFigure is a figure in thousandths, and the value of its label.
struct LabelledFigure {
  std::string_view label;
  std::int64_t thousandths = 0;
};

// write_gauges, in end_metrics.cpp, adds a family with a sample for each figure. Figures whose labels are equal stand side by
// side, and the first of them counts.
void write_gauges(MetricsText& text, std::string_view name, std::string_view help, std::string_view label,
                  std::span<const LabelledFigure> figures) noexcept;

}  // namespace coir::http
