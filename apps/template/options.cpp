#include "options.h"

#include <coir/config.h>
#include <coir/quantity.h>
#include <stdio.h>

#include <string_view>

namespace {

// Option is a row of the command line. take returns what is wrong with a text, or null.
struct Option {
  std::string_view name;
  const char* value;
  const char* help;
  const char* (*take)(const char* text, Options& options);
};

constexpr Option kOptions[] = {
    {"--listen", "ADDRESS", "serve HTTP there; :80 for all addresses (default: 127.0.0.1:8080)",
     [](const char* text, Options& options) -> const char* { return options.serve.listen = text, nullptr; }},
    {"--tls-listen", "ADDRESS", "serve HTTPS there",
     [](const char* text, Options& options) -> const char* { return options.serve.tls_listen = text, nullptr; }},
    {"--cert", "FILE", "certificate and key as PEM, made at the first start (default: /var/lib/station/station.pem)",
     [](const char* text, Options& options) -> const char* { return options.serve.certificate = text, nullptr; }},
    {"--sensor", "FILE", "the sensor, such as /sys/class/thermal/thermal_zone0/temp (default: readings are made up)",
     [](const char* text, Options& options) -> const char* { return options.sensor = text, nullptr; }},
    {"--every", "TIME", "the time between two readings (default: 1s)",
     [](const char* text, Options& options) -> const char* {
       const auto time = coir::parse_time(text);
       return time ? options.every = *time, nullptr : "a time such as 500ms or 2s is wanted";
     }},
    {"--memory", "SIZE", "the most memory to take, such as 8M (default: what the machine can spare)",
     [](const char* text, Options& options) -> const char* {
       const auto size = coir::parse_size(text);
       return size ? options.serve.memory = *size, nullptr : "a size such as 512K or 8M is wanted";
     }},
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
      if (each.name == name) wrong = i + 1 < count ? each.take(words[i + 1], options) : "a value is missing";
    }
    if (wrong == nullptr) continue;
    fprintf(stderr, "station: %s: %s (station --help tells)\n", words[i], wrong);
    return 2;
  }
  return std::nullopt;
}
