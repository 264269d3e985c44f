#include <coir/http.h>

#include "monitor.h"
#include "options.h"
#include "routes.h"

int main(int count, char** words) {
  Options options;
  if (const auto status = parse_options(count, words, options)) return *status;
  Monitor monitor(options.sensor);
  const auto jobs = [&](coir::Nursery& nursery) {
    nursery.start({.name = "publish"}, [&] { return monitor.publish(); });
    nursery.start({.name = "measure"}, [&] { return monitor.measure(options.every); });
  };
  options.serve.jobs = jobs;
  coir::http::Metrics metrics;
  add_metrics(monitor, metrics);
  auto app = routes_of(monitor, metrics);
  return coir::http::serve(options.serve, app);
}
