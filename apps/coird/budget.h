#pragma once

#include <coir/http/serve.h>

#include "options/options.h"

// plan_budget sets the ceilings that the options ask for, and the numbers of connections and requests that they leave
// open. `budget` is the plan of the start. False: they cannot be kept; one line on standard error has named the figure that
// breaks them.
[[nodiscard]] bool plan_budget(Options& options, coir::http::MemoryPlan& budget) noexcept;

// print_budget writes the plan to standard output, one "name: value unit" a line. False: a line has said what is wrong
// with a file of the options.
[[nodiscard]] bool print_budget(const Options& options, const coir::http::MemoryPlan& budget) noexcept;

// fit_descriptors raises the limit of open descriptors as far as it goes, and lowers the numbers of requests and of
// connections to what it allows: where files are served each request may need one for its file, up to a quarter of all.
void fit_descriptors(Options& options) noexcept;
