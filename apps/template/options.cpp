#include "options.h"

#include <coir/config.h>
#include <coir/quantity.h>
#include <stdio.h>

#include <string_view>

namespace {

// Option is a row of the command line. take returns whether its text is a value for it.
struct Option {
  std::string_view name;
  const char* value;
  const char* help;
  bool (*take)(const char* text, Options& options);
};

template <class Value, class Given>
bool take_if(Value& value, const Given& given) noexcept {
  if (given) value = *given;
  return given.has_value();
}

constexpr Option kOptions[] = {
    {"--listen", "ADDRESS", "serve HTTP there; :80 for all addresses (default: 127.0.0.1:8080)",
     [](const char* text, Options& options) { return options.serve.listen = text, true; }},
    {"--tls-listen", "ADDRESS", "serve HTTPS there",
     [](const char* text, Options& options) { return options.serve.tls_listen = text, true; }},
    {"--cert", "FILE", "certificate and key as PEM, made at the first start (default: /var/lib/station/station.pem)",
     [](const char* text, Options& options) { return options.serve.certificate = text, true; }},
    {"--sensor", "FILE", "the sensor, such as /sys/class/thermal/thermal_zone0/temp (default: readings are made up)",
     [](const char* text, Options& options) { return options.sensor = text, true; }},
    {"--every", "TIME", "the time between two readings, such as 500ms (default: 1s)",
     [](const char* text, Options& options) { return take_if(options.every, coir::parse_time(text)); }},
    {"--memory", "SIZE", "the most memory to take, such as 8M (default: what the machine can spare)",
     [](const char* text, Options& options) { return take_if(options.serve.memory, coir::parse_size(text)); }},
};

void print_help() noexcept {
  puts(
      "usage: station [OPTION VALUE ...]\n\nTakes readings of a sensor and serves them: / /reading /readings "
      "/metrics\n");
  for (const Option& each : kOptions) printf("  %s %s\n      %s\n", each.name.data(), each.value, each.help);
  puts("  --help, --version\n\nSIGTERM lets requests end, then ends the program.");
}

}  // namespace

std::optional<int> parse_options(int count, char** words, Options& options) noexcept {
  for (int i = 1; i < count; i += 2) {
    const std::string_view name = words[i];
    if (name == "--help") return print_help(), 0;
    if (name == "--version") return puts("station on coir " COIR_VERSION), 0;
    const char* wrong = "there is no such option";
    for (const Option& each : kOptions) {
      if (each.name != name) continue;
      wrong = i + 1 < count && each.take(words[i + 1], options) ? nullptr : each.help;
    }
    if (wrong == nullptr) continue;
    fprintf(stderr, "station: %s: %s (station --help tells)\n", words[i], wrong);
    return 2;
  }
  return std::nullopt;
}
