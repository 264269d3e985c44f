#pragma once

// getopt_long: musl has it, it is 2 KB of code, and users get from it what they know of other programs ("--root=DIR",
// "--root DIR", "--", unambiguous abbreviations). Its own messages are off: each of ours is one line that names the
// option.
#include <getopt.h>

// The options of coird that have no letter.
enum Long : int {
  kMemory = 256,
  kKeepFree,
  kConnectionCost,
  kPrintBudget,
  kMaxConnections,
  kBacklog,
  kMaxActive,
  kMaxRequests,
  kMaxBody,
  kLimitConnections,
  kLimitRate,
  kTlsListen,
  kCert,
  kKey,
  kClientCa,
  kState,
  kHandshakeTimeout,
  kIdleTimeout,
  kEvictAfter,
  kHeaderTimeout,
  kBodyTimeout,
  kWriteTimeout,
  kDrainTimeout,
  kAccessLog,
  kDotFiles,
  kIndex,  // this and the next up to kHashToken in a build with COIR_SITE only
  kCache,
  kErrorPage,
  kAllowPut,
  kAuth,
  kHashPassword,
  kHashToken,
  kMetricsListen,
  kNoMetrics,
  kMqtt,  // this and the next up to kMqttInterval in a build with COIR_MQTT and fibers only
  kMqttPasswordFile,
  kMqttCa,
  kMqttCommands,
  kMqttDiscovery,
  kMqttInterval,
  kProbe,
  kTrace,
};

constexpr option kOptions[] = {
    {"listen", required_argument, nullptr, 'l'},
    {"root", required_argument, nullptr, 'r'},
    {"dot-files", no_argument, nullptr, kDotFiles},
    {"index", no_argument, nullptr, kIndex},
    {"cache", required_argument, nullptr, kCache},
    {"error-page", required_argument, nullptr, kErrorPage},
    {"allow-put", required_argument, nullptr, kAllowPut},
    {"auth", required_argument, nullptr, kAuth},
    {"hash-password", required_argument, nullptr, kHashPassword},
    {"hash-token", required_argument, nullptr, kHashToken},
    {"metrics-listen", required_argument, nullptr, kMetricsListen},
    {"no-metrics", no_argument, nullptr, kNoMetrics},
    {"mqtt", required_argument, nullptr, kMqtt},
    {"mqtt-password-file", required_argument, nullptr, kMqttPasswordFile},
    {"mqtt-ca", required_argument, nullptr, kMqttCa},
    {"mqtt-commands", no_argument, nullptr, kMqttCommands},
    {"mqtt-discovery", required_argument, nullptr, kMqttDiscovery},
    {"mqtt-interval", required_argument, nullptr, kMqttInterval},
    {"tls-listen", required_argument, nullptr, kTlsListen},
    {"cert", required_argument, nullptr, kCert},
    {"key", required_argument, nullptr, kKey},
    {"client-ca", required_argument, nullptr, kClientCa},
    {"state", required_argument, nullptr, kState},
    {"handshake-timeout", required_argument, nullptr, kHandshakeTimeout},
    {"memory", required_argument, nullptr, kMemory},
    {"keep-free", required_argument, nullptr, kKeepFree},
    {"connection-cost", required_argument, nullptr, kConnectionCost},
    {"print-budget", no_argument, nullptr, kPrintBudget},
    {"max-connections", required_argument, nullptr, kMaxConnections},
    {"backlog", required_argument, nullptr, kBacklog},
    {"max-active", required_argument, nullptr, kMaxActive},
    {"max-requests", required_argument, nullptr, kMaxRequests},
    {"max-body", required_argument, nullptr, kMaxBody},
    {"limit-connections", required_argument, nullptr, kLimitConnections},
    {"limit-rate", required_argument, nullptr, kLimitRate},
    {"idle-timeout", required_argument, nullptr, kIdleTimeout},
    {"evict-after", required_argument, nullptr, kEvictAfter},
    {"header-timeout", required_argument, nullptr, kHeaderTimeout},
    {"body-timeout", required_argument, nullptr, kBodyTimeout},
    {"write-timeout", required_argument, nullptr, kWriteTimeout},
    {"drain-timeout", required_argument, nullptr, kDrainTimeout},
    {"access-log", no_argument, nullptr, kAccessLog},
    {"probe", no_argument, nullptr, kProbe},
    {"trace", required_argument, nullptr, kTrace},
    {"help", no_argument, nullptr, 'h'},
    {"version", no_argument, nullptr, 'V'},
    {},
};

// name_of is the name of an option by its letter or number.
inline const char* name_of(int chosen) noexcept {
  for (const option& known : kOptions) {
    if (known.name != nullptr && known.val == chosen) return known.name;
  }
  return "?";
}
