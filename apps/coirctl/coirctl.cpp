#include "coirctl.h"

#include <coir/program.h>
#include <signal.h>
#include <unistd.h>

#include <string_view>

#include "control.h"
#include "crashes.h"
#include "fetch.h"
#include "mcp.h"
#include "safe.h"

namespace {

constexpr std::string_view kHelp =
    "usage: coirctl VERB ...\n"
    "\n"
    "  fetch    fetches an address of http or https, and prints its content or saves it\n"
    "  mcp      asks a server of MCP: its tools, resources and prompts\n"
    "  crashes  shows how the last runs of coird ended\n"
    "  safe     has coird's next start be in safe mode, or no longer\n"
    "\n"
    "  status, top, connections, memory, fibers, stacks, routes, log, pins, trace, check, reload, drain, stop\n"
    "           show and steer a coird that runs with --control\n"
    "\n"
    "coirctl VERB --help tells more.\n";

int print(std::string_view text) noexcept {
  return ::write(STDOUT_FILENO, text.data(), text.size()) < 0 ? 1 : 0;
}

}  // namespace

int coirctl(int count, char** words) noexcept {
  const std::string_view verb = count > 1 ? words[1] : "";
  if (verb == "--help" || verb == "-h") return print(kHelp);
  const bool fetches = verb == "fetch";
  const bool shows_crashes = verb == "crashes";
  const bool controls = is_control_verb(verb);
  const bool switches_safe_mode = verb == "safe";
  if (!fetches && !shows_crashes && !controls && !switches_safe_mode && verb != "mcp") {
    say_error(count > 1 ? verb : "no verb", "no such verb (coirctl --help tells)");
    return 2;
  }
  for (int i = 2; i < count; ++i) {
    if (std::string_view(words[i]) == "--help" || std::string_view(words[i]) == "-h")
      return print(fetches              ? fetch_help
                   : shows_crashes      ? crashes_help
                   : switches_safe_mode ? safe_help
                   : controls           ? control_help
                                        : mcp_help);
  }
  if (controls) {
    static ControlOptions asked;
    return asked.read(verb, count - 2, words + 2) ? control(asked) : 2;
  }
  if (shows_crashes) {
    static CrashesOptions crashes;
    return crashes.read(count - 2, words + 2) ? show_crashes(crashes) : 2;
  }
  if (switches_safe_mode) {
    SafeOptions safe;
    return safe.read(count - 2, words + 2) ? switch_safe_mode(safe) : 2;
  }
  static FetchOptions fetched;
  static AskMcpOptions asked;
  if (!(fetches ? fetched.read(count - 2, words + 2) : asked.read(count - 2, words + 2))) return 2;
  signal(SIGPIPE, SIG_IGN);
  return coir::run_program([fetches] { return fetches ? fetch(fetched) : ask_mcp(asked); });
}
