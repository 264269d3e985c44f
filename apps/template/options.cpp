#include "options.h"

#include <getopt.h>
#include <stdio.h>

#include <charconv>
#include <cstdint>
#include <string_view>

namespace {

constexpr option kOptions[] = {
    {"listen", required_argument, nullptr, 'l'}, {"tls-listen", required_argument, nullptr, 't'},
    {"cert", required_argument, nullptr, 'c'},   {"sensor", required_argument, nullptr, 's'},
    {"every", required_argument, nullptr, 'e'},  {"memory", required_argument, nullptr, 'm'},
    {"print-budget", no_argument, nullptr, 'b'}, {"help", no_argument, nullptr, 'h'},
    {"version", no_argument, nullptr, 'v'},      {nullptr, 0, nullptr, 0},
};

bool wrong(const char* option, const char* value, const char* cure) noexcept {
  fprintf(stderr, "station: %s '%s': %s (station --help tells)\n", option, value, cure);
  return false;
}

// take_number reads a whole number from 1 to `most`; behind it may stand K or M where `sizes` are read.
bool take_number(const char* option, std::uint64_t most, bool sizes, std::uint64_t& into) noexcept {
  const std::string_view text = optarg;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), into);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const std::uint64_t factor = unit.empty() ? 1 : sizes && unit == "K" ? 1024 : sizes && unit == "M" ? 1024 * 1024 : 0;
  if (fault != std::errc() || factor == 0 || into == 0 || into > most / factor) {
    return wrong(option, optarg, sizes ? "a size such as 512K or 8M is wanted" : "milliseconds are wanted");
  }
  into *= factor;
  return true;
}

}  // namespace

void print_help() noexcept {
  fputs(
      "usage: station [option ...]\n"
      "\n"
      "Takes readings of a sensor and tells them over HTTP: / /reading /readings /metrics\n"
      "\n"
      "  --listen ADDRESS      serve HTTP there; 0.0.0.0:80 for all addresses, 127.0.0.1:0 for a free port\n"
      "  --tls-listen ADDRESS  serve HTTPS there\n"
      "  --cert FILE           certificate and key as PEM (default: /var/lib/station/station.pem); made at the\n"
      "                        first start where there is none\n"
      "  --sensor FILE         the sensor, in millidegrees: /sys/class/thermal/thermal_zone0/temp\n"
      "                        (default: readings are made up)\n"
      "  --every MS            milliseconds between two readings (default: 1000)\n"
      "  --memory SIZE         the most memory to take, such as 8M (default: what the machine can spare)\n"
      "  --print-budget        tell what fits into that memory, and end\n"
      "  --help, --version\n"
      "\n"
      "SIGTERM lets requests end, then ends the program.\n",
      stdout);
}

bool parse_options(int count, char** words, Options& options) noexcept {
  opterr = 0;
  std::uint64_t number = 0;
  for (int letter; (letter = getopt_long(count, words, ":", kOptions, nullptr)) != -1;) {
    switch (letter) {
      case 'l':
        options.listen = optarg;
        break;
      case 't':
        options.tls_listen = optarg;
        break;
      case 'c':
        options.certificate = optarg;
        break;
      case 's':
        options.sensor = optarg;
        break;
      case 'e':
        if (!take_number("--every", 86'400'000, false, number)) return false;
        options.every = std::chrono::milliseconds(number);
        break;
      case 'm':
        if (!take_number("--memory", SIZE_MAX, true, number)) return false;
        options.memory = static_cast<std::size_t>(number);
        break;
      case 'b':
        options.action = Options::Action::print_budget;
        break;
      case 'h':
        options.action = Options::Action::help;
        return true;
      case 'v':
        options.action = Options::Action::version;
        return true;
      case ':':
        return wrong("option", words[optind - 1], "a value is missing");
      default:
        return wrong("option", words[optind - 1], "there is none of this name");
    }
  }
  if (optind < count) return wrong("argument", words[optind], "there are options only");
  if (options.action == Options::Action::serve && options.listen.empty() && options.tls_listen.empty()) {
    return wrong("option", "--listen", "without it or --tls-listen nothing is served");
  }
  return true;
}
