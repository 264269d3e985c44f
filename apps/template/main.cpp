#include <coir/config.h>
#include <coir/http.h>
#include <stdio.h>

#include "monitor.h"
#include "options.h"
#include "routes.h"

namespace {

int print_plan(coir::http::ServeOptions options) noexcept {
  coir::http::MemoryPlan plan;
  const bool fits = plan_memory(options, plan).has_value();
  printf("ceiling: %zu bytes\nkept_free: %zu bytes\nprocess: %zu bytes\nconnection: %zu bytes\nrequest: %zu bytes\n",
         plan.ceiling, plan.kept_free, plan.process, plan.connection, plan.request);
  if (fits) {
    printf("max_connections: %zu connections\nmax_active: %zu requests\n", options.server.max_connections,
           options.server.max_active);
    return 0;
  }
  fprintf(stderr, "station: %zu bytes are too few, %zu serve one request\n", plan.ceiling, plan.least);
  return 2;
}

int serve(const Options& options) noexcept {
  Monitor monitor(options.sensor);
  auto app = routes_of(monitor);
  return coir::http::serve({.name = "station",
                            .listen = options.listen,
                            .tls_listen = options.tls_listen,
                            .certificate = options.certificate,
                            .memory = options.memory,
                            .running = &monitor.server,
                            .jobs =
                                [&](coir::Nursery& jobs) {
                                  jobs.start({.name = "publish"}, [&] { return monitor.publish(); });
                                  jobs.start({.name = "measure"}, [&] { return monitor.measure(options.every); });
                                }},
                           app);
}

}  // namespace

int main(int count, char** words) {
  Options options;
  if (!parse_options(count, words, options)) return 2;
  switch (options.action) {
    case Options::Action::help:
      return print_help(), 0;
    case Options::Action::version:
      return puts("station on coir " COIR_VERSION), 0;
    case Options::Action::print_budget:
      return print_plan({.tls_listen = options.tls_listen, .memory = options.memory});
    case Options::Action::serve:
      return serve(options);
  }
}
