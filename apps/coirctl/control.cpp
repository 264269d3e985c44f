#include "control.h"

#include <coir/format.h>

#include "asking.h"
#include "fetch_options.h"
#include "output.h"

namespace {

// print prints an answer: the text with its control bytes escaped.
int print(const Asking& asking, std::string_view text, bool json) noexcept {
  static char visible[128 * 1024];
  if (json) {
    write_text(text.empty() ? std::string_view("{\"schema\":1}\n") : text);
  } else {
    write_text(coir::format(visible, coir::escaped_lines(text)));
  }
  return all_written() ? kHasDone : asking.fail(kRefused, "standard output cannot be written");
}

}  // namespace

int control(const ControlOptions& options) noexcept {
  if (options.verb == "top") return show_top(options);
  if (options.verb == "trace") return save_trace(options);
  if (options.verb == "check") return check_configuration(options);
  if (options.follow) return follow_log(options);
  Asking asking(options);
  char request[128];
  std::string_view text;
  coir::Formatter out(request);
  out.add(options.verb, options.json ? " json" : " text");
  if (options.verb == "log") out.add(" ", options.level);
  if (!options.pin.empty()) out.add(" ", options.pin, " ", options.use);
  const std::string_view line = out.text();
  if (options.verb == "stop") {
    // The end of the connection is that of coird.
    if (const int status = asking.begin("stop text"); status != kHasDone) return status;
    if (const int status = asking.await_end(); status != kHasDone) return status;
  } else if (const int status = asking.ask(line, text); status != kHasDone) {
    return status;
  }
  return print(asking, text, options.json);
}
