#include "last_end.h"

#include <coir/config.h>
#include <coir/net/log_line.h>
#include <errno.h>

#include <optional>

#include "complaint.h"

namespace {

// Written before the run, and only read then.
constinit std::optional<coir::LastEnd> g_last;

}  // namespace

void RunRecord::begin(const Options& options) noexcept {
  if (!options.state_given) return;
  coir::keep_log_lines(true);
  auto last = coir::EndRecord::begin(options.state,
                                     {.program = "coird", .version = COIR_VERSION, .log = coir::crash_log_lines});
  if (!last && last.error().sys == EROFS) {
    warn({"--state ", options.state, ": read-only: coird cannot store there how runs end, crash loops and a seed"});
    return;
  }
  if (!last) {
    const bool taken = last.error() == coir::ErrorCode::busy;
    warn({"--state ", options.state, ": how this run ends is not recorded: ",
          taken ? std::string_view("another coird keeps its record there") : describe(last.error())});
    return;
  }
  if (last->damaged != 0) warn({options.state, "/crashes: damaged records are left out: ", last->damaged});
  if (last->any) say({"the last run ", last->text()});
  g_last = *last;
}

void write_last_end(coir::http::MetricsText& text) noexcept {
  if (g_last) write_end_metrics(text, *g_last);
}
