// write_end_metrics, write_gauge, write_counter and write_gauges, of coir/http/metrics.h.
#include <coir/end_record.h>
#include <coir/format.h>
#include <coir/http/metrics.h>

#include "http/metrics_text.h"

namespace coir::http {

void write_end_metrics(MetricsText& text, const LastEnd& last) noexcept {
  char label[40];
  text.about(MetricsText::Kind::counter, "coir_ends_total", "Runs that have ended, by how they did.");
  for (std::size_t i = 1; i < kEnds; ++i) {
    const std::string_view name = end_name(static_cast<End>(i));
    text.sample("coir_ends_total", format(label, "{kind=\"", name, "\"}"), last.counts[i]);
  }
  if (last.any) text.state("coir_last_end_info", "How the last run ended.", "kind", end_name(last.end));
}

void write_gauge(MetricsText& text, std::string_view name, std::string_view help, std::uint64_t value) noexcept {
  text.one(MetricsText::Kind::gauge, name, help, value);
}

void write_counter(MetricsText& text, std::string_view name, std::string_view help, std::uint64_t value) noexcept {
  text.one(MetricsText::Kind::counter, name, help, value);
}

void write_gauges(MetricsText& text, std::string_view name, std::string_view help, std::string_view label,
                  std::span<const LabelledFigure> figures) noexcept {
  text.about(MetricsText::Kind::gauge, name, help);
  char value[24], quoted[80];
  std::string_view last;
  for (const LabelledFigure& each : figures) {
    if (&each != figures.data() && each.label == last) continue;
    last = each.label;
    text.add({name, "{", label, "=", format(quoted, json_quoted(last.substr(0, 63))), "} ",
              format(value, fixed(each.thousandths, 3)), "\n"});
  }
}

}  // namespace coir::http
