// The command line of the verbs that are for a running coird, and their help. Declared in control.h.
#include <coir/net/log_line.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "control.h"
#include "fetch_options.h"

const std::string_view control_help =
    "usage: coirctl VERB [OPTION]...\n"
    "\n"
    "Asks a coird that runs with --control, as root or as coird's own user. The group of its --control-readers\n"
    "may ask, too, but for reload, drain, stop, check, and pins that are switched.\n"
    "\n"
    "  status       whether it runs, since when, and with how much to do\n"
    "  top          connections, requests, CPU and memory: every second on a terminal, else once; Ctrl-C ends it\n"
    "  connections  how many connections and requests there are, and their limits\n"
    "  memory       the memory accounts\n"
    "  fibers       up to 64 fibers, and the event that each waits for\n"
    "  stacks       the stacks of these, and the calls on them: addresses for llvm-symbolizer or addr2line\n"
    "  routes       the servers that requests are forwarded to, and how they are\n"
    "  log          the latest lines of the log; with -f also those that come, until Ctrl-C\n"
    "  pins         the board's pins: direction, level and holder of each. pins NAME read, on or off uses one\n"
    "               that coird's --pin names; as an output it stays coird's\n"
    "  trace        the latest state changes of fibers, for ui.perfetto.dev, of a build with tracing\n"
    "  check        whether coird's next start, or reload, would take its options and files as they are now\n"
    "  reload       reads the configuration again, as SIGHUP does; status 1 if the old one stays\n"
    "  drain        accepts nothing more, lets requests end and ends coird, as SIGTERM does; returns at once\n"
    "  stop         the same, and waits until coird has ended\n"
    "\n"
    "  -f, --follow            of log\n"
    "      --level LEVEL       of log: lines that matter so much: error, warning, notice or info (default: info)\n"
    "  -o, --output FILE       of trace (default: standard output)\n"
    "      --socket PATH       the path of coird's --control (default: the first of /run/coird.sock,\n"
    "                          /run/coird/control and /var/run/coird.sock that is there)\n"
    "      --json              one JSON object, whose member \"schema\" is 1; of log -f one a line\n"
    "      --timeout SECONDS   for the answer (default: 5; of reload 60; of stop coird's --drain-timeout and 10)\n"
    "\n"
    "The exit status: 0, coird runs and has done so; 1, coird refuses, or what is checked is wrong; 2, the command\n"
    "line; 3, coird does not run; 4, that is unknown: not permitted, no answer, or another version.\n";

namespace {

constexpr std::string_view kVerbs[] = {"status", "top",  "connections", "memory", "fibers", "stacks", "routes",
                                       "log",    "pins", "trace",       "check",  "reload", "drain",  "stop"};

// usual_socket is where the init scripts and units that come with coird have its socket.
const char* usual_socket() noexcept {
  static constexpr const char* kUsual[] = {"/run/coird.sock", "/run/coird/control", "/var/run/coird.sock"};
  const auto* const found = std::ranges::find_if(kUsual, [](const char* path) { return ::access(path, F_OK) == 0; });
  return found != std::end(kUsual) ? *found : kUsual[0];
}

}  // namespace

bool is_control_verb(std::string_view verb) noexcept {
  return std::ranges::find(kVerbs, verb) != std::end(kVerbs);
}

bool ControlOptions::read(std::string_view of, int count, char** words) noexcept {
  verb = of;
  for (int i = 0; i < count; ++i) {
    const std::string_view word = words[i];
    const bool is_output = verb == "trace" && (word == "-o" || word == "--output");
    if (word == "--json" && verb != "trace") {
      json = true;
    } else if (verb == "log" && (word == "-f" || word == "--follow")) {
      follow = true;
    } else if (verb == "log" && word == "--level") {
      if (i + 1 == count) return refuse(word, "a value is missing");
      level = words[++i];
      if (!coir::log_level_of(level)) return refuse(level, "--level takes error, warning, notice or info");
    } else if (word == "--socket" || word == "--timeout" || is_output) {
      if (i + 1 == count) return refuse(word, "a value is missing");
      const std::string_view value = words[++i];
      if (word == "--socket" || is_output) {
        (is_output ? output : socket) = words[i];
        continue;
      }
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), timeout_s);
      if (error != std::errc() || end != value.data() + value.size() || timeout_s < 1 || timeout_s > 86'400)
        return refuse(value, "--timeout takes 1 to 86400 seconds");
    } else if (verb == "pins" && pin.empty() && !word.starts_with('-') && word.find(' ') == word.npos) {
      if (i + 1 == count || *words[i + 1] == '-') return refuse(word, "give read, on or off behind it");
      if (word.empty() || word.size() > 31) return refuse(word, "a pin's name has 1 to 31 characters");
      pin = word;
      use = words[++i];
      if (use != "read" && use != "on" && use != "off") return refuse(use, "a pin is read, or switched on or off");
    } else {
      return refuse(word, "no such option (coirctl status --help tells)");
    }
  }
  if (socket == nullptr) socket = usual_socket();
  return true;
}
