#pragma once

// Counters and gauges of a server and its runtime, for Prometheus.
//
//   void metrics(Exchange& exchange, const Server& server) { write_metrics(exchange, server, nullptr); }

#include <coir/callable.h>
#include <coir/end_record.h>
#include <coir/http/exchange.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace coir::http {

class FileTree;
class MetricsText;
class Server;

// MoreMetrics adds families of a program's parts, such as write_gateway_metrics of coir/http/proxy.h does.
using MoreMetrics = Callable<void(MetricsText& text)>;

// write_metrics answers with the state of the process in the text format of Prometheus, version 0.0.4: the runtime's
// fibers, stacks and waits, the server's connections, responses and bytes, and the resident memory. `files` may be
// null. `more` is called in between.
void write_metrics(Exchange& exchange, const Server& server, const FileTree* files,
                   const MoreMetrics& more = {}) noexcept;

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
