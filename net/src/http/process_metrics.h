#pragma once

#include "http/metrics_text.h"

namespace coir::http {

// write_process adds the samples of the process as a whole, by the names that Prometheus' own clients use: when it
// began, processor time, descriptors, resident memory; and how it was built. Figures that the kernel does not tell are
// left out.
void write_process(MetricsText& text) noexcept;

}  // namespace coir::http
