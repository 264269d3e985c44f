#include "options.h"

#include <coir/config.h>
#include <coir/http/accounts.h>
#include <coir/net/stream.h>
#include <coir/program.h>
#include <string.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "allowed_hosts.h"
#include "announcing.h"
#include "complaint.h"
#include "file_options.h"
#include "gateway.h"
#include "needed_options.h"
#include "option_table.h"
#include "quantity.h"
#include "reporting.h"
#include "scripts.h"

#if COIR_TLS
#include <coir/net/tls.h>
#endif
#if COIRD_MCP
#include <coir/mcp/server.h>
#endif

namespace {

using std::chrono::milliseconds;

bool add_listener(const char* name, const char* text, Options& options) noexcept {
  if (options.listen_count == coir::http::Server::kMaxListeners) {
    return complain(kSeeHelp,
                    {"--", name, " '", text, "': more than ", coir::http::Server::kMaxListeners, " addresses"});
  }
  const auto address = coir::Address::parse(text);
  if (!address) return complain(kSeeHelp, {"--", name, " '", text, "': ", address.error()});
  options.listen[options.listen_count++] = *address;
  return true;
}

bool add_file(const char* name, const char* text, const char* (&into)[Options::kMaxCertificates],
              std::size_t& count) noexcept {
  if (count == Options::kMaxCertificates) return complain(kSeeHelp, {"--", name, " '", text, "': more than ", count});
  into[count++] = text;
  return true;
}

// check_tls looks at what only the whole command line tells.
bool check_tls(const Options& options) noexcept {
  if (options.certificate_count != options.key_count) {
    return complain(kSeeHelp, {"--cert ", options.certificate_count, " times and --key ", options.key_count,
                               " times: they come in pairs"});
  }
  return true;
}

template <class Number>
bool set_size(int chosen, const char* text, std::uint64_t least, std::uint64_t most, Number& into) noexcept {
  const auto value = parse_size(text);
  if (!value || *value < least || *value > most) {
    return complain(kSeeHelp, {"--", name_of(chosen), " '", text, "': not a number from ", least, " to ", most});
  }
  into = static_cast<Number>(*value);
  return true;
}

// set_memory takes "8M" for the total, or "http=1M" for an account.
bool set_memory(const char* text, Options& options) noexcept {
  static constexpr coir::Account* kAccounts[] = {
      &coir::account::connections, &coir::account::http,       &coir::account::stacks, &coir::account::files,
#if COIR_TLS
      &coir::account::tls,         &coir::account::handshakes,
#endif
#if COIRD_MCP
      &coir::account::mcp,
#endif
  };
  std::string_view size = text;
  coir::Account* account = nullptr;
  if (const std::size_t equals = size.find('='); equals != size.npos) {
    for (coir::Account* known : kAccounts) {
      if (size.substr(0, equals) == known->name()) account = known;
    }
    if (account == nullptr)
      return complain(kSeeHelp, {"--memory '", text,
                                 "': the accounts are connections, http, stacks, files, tls, handshakes and mcp"});
    size.remove_prefix(equals + 1);
  }
  const auto bytes = parse_size(size);
  if (!bytes || *bytes == 0) return complain(kSeeHelp, {"--memory '", text, "': not a size such as 512K or 8M"});
  if (account == nullptr) {
    options.memory = static_cast<std::size_t>(*bytes);
    return true;
  }
  if (options.account_count == Options::kMaxCeilings)
    return complain(kSeeHelp, {"--memory '", text, "': more than ", Options::kMaxCeilings});
  options.accounts[options.account_count++] = {account, static_cast<std::size_t>(*bytes)};
  return true;
}

bool set_time(int chosen, const char* text, milliseconds& into) noexcept {
  const auto value = parse_time(text);
  if (!value) return complain(kSeeHelp, {"--", name_of(chosen), " '", text, "': not a time such as 500ms, 30s or 2m"});
  into = *value;
  return true;
}

// set_time_or_zero takes 0, which set_time refuses, as what the option says of it.
bool set_time_or_zero(int chosen, const char* text, milliseconds& into) noexcept {
  into = milliseconds(0);
  return strcmp(text, "0") == 0 || set_time(chosen, text, into);
}

// names_file tells which options name a file or a folder: an empty name is a variable that was not set, and the option
// must not be taken for one that was left out.
bool names_file(int chosen) noexcept {
  return chosen == kCert || chosen == kKey || chosen == kClientCa || chosen == kState || chosen == 'r' ||
         chosen == kTrace || chosen == kAllowPut || chosen == kAuth || chosen == kProxyCa || chosen == kProxyCert ||
         chosen == kProxyKey || chosen == kMqttPasswordFile || chosen == kMqttCa || chosen == kMcpTokenFile ||
         chosen == kSysfs;
}

bool apply(int chosen, const char* text, Options& options) noexcept {
  if (names_file(chosen) && *text == '\0') return complain(kSeeHelp, {"--", name_of(chosen), " '': a name is missing"});
  coir::http::ServerOptions& server = options.server;
  if (chosen >= kMcp && chosen <= kSysfs) return apply_mcp(chosen, text, options);
  std::uint64_t value = 0;
  switch (chosen) {
    case 'l':
      return add_listener("listen", text, options);
    case kTlsListen:
      if (!coir::kTls) return complain(kSeeHelp, {"--tls-listen '", text, "': this build has no TLS"});
      if (!add_listener("tls-listen", text, options)) return false;
      options.tls[options.listen_count - 1] = true;
      return true;
    case kCert:
      return add_file("cert", text, options.certificates, options.certificate_count);
    case kKey:
      return add_file("key", text, options.keys, options.key_count);
    case kClientCa:
      options.client_authorities = text;
      return true;
    case kState:
      options.state = text;
      return true;
    case kHandshakeTimeout:
      return set_time(chosen, text, server.handshake_timeout);
    case 'r':
      options.root = text;
      return true;
    case kMaxConnections:
      options.connections_given = true;
      return set_size(chosen, text, 1, 1'000'000, server.max_connections);
    case kBacklog:
      return set_size(chosen, text, 1, 65'535, options.backlog);
    case kMemory:
      return set_memory(text, options);
    case kKeepFree:
      options.reserve_given = true;
      return set_size(chosen, text, 0, std::uint64_t{1} << 40, options.reserve);
    case kConnectionCost:
      return set_size(chosen, text, 0, 1 << 20, server.kernel_bytes_per_connection);
    case kPrintBudget:
      options.action = Options::Action::print_budget;
      return true;
    case kMaxActive:
      options.active_given = true;
      if (!set_size(chosen, text, 1, 100'000, value)) return false;
      if (!coir::kFibers && value > 1) {
        return complain(kSeeHelp,
                        {"--max-active '", text, "': this build has no fibers and serves one request at a time"});
      }
      server.max_active = static_cast<std::size_t>(value);
      return true;
    case kMaxRequests:
      return set_size(chosen, text, 0, UINT32_MAX, server.max_requests_per_connection);
    case kLimitConnections:
      return set_size(chosen, text, 0, 1'000'000, server.max_connections_per_client);
    case kLimitRate:
      return set_size(chosen, text, 0, 1'000'000, server.max_requests_per_client);
    case kMaxBody:
      return set_size(chosen, text, 0, std::uint64_t{1} << 40, server.limits.max_body);
    case kIdleTimeout:
      return set_time_or_zero(chosen, text, server.idle_timeout);
    case kEvictAfter:
      return set_time_or_zero(chosen, text, server.evict_after);
    case kHeaderTimeout:
      return set_time(chosen, text, server.header_timeout);
    case kBodyTimeout:
      return set_time(chosen, text, server.body_timeout);
    case kBodyRate:
      return set_size(chosen, text, 0, UINT32_MAX, server.body_rate);
    case kWriteTimeout:
      return set_time(chosen, text, server.write_timeout);
    case kDrainTimeout:
      return set_time(chosen, text, options.drain_timeout);
    case kAccessLog:
      server.access_log = true;
      return true;
    case kProxy:
    case kProxyCa:
    case kProxyCert:
    case kProxyKey:
    case kRoutes:
      return apply_gateway(chosen, text, options);
    case kFastcgi:
      return apply_fastcgi(chosen, text, options);
    case kAllowHost:
      return add_host(text, options);
    case kMetricsListen:
      if (!add_listener("metrics-listen", text, options)) return false;
      options.metrics[options.listen_count - 1] = options.metrics_apart = true;
      return true;
    case kNoMetrics:
      options.no_metrics = true;
      return true;
    case kDotFiles:
      options.dot_files = true;
      return true;
    case kIndex:
    case kCache:
    case kErrorPage:
    case kAllowPut:
    case kAuth:
    case kHashPassword:
    case kHashToken:
      return apply_site(chosen, text, options);
    case kMdns:
      return apply_mdns(text, options);
    case kMqtt:
    case kMqttPasswordFile:
    case kMqttCa:
    case kMqttCommands:
    case kMqttDiscovery:
    case kMqttInterval:
      return apply_mqtt(chosen, text, options);
    case kTrace:
      if (!coir::tracing()) return complain(kSeeHelp, {"--trace '", text, "': this build has no tracing"});
      options.trace = text;
      return true;
    case kProbe:
      options.action = Options::Action::probe;
      return true;
    case 'h':
      options.action = Options::Action::help;
      return true;
    default:
      options.action = Options::Action::version;
      return true;
  }
}

}  // namespace

bool parse_options(int count, char** arguments, Options& options) noexcept {
  opterr = 0;
  bool given[kLast] = {};
  for (;;) {
    const int before = optind;
    // The colon asks for ':' where a value is missing.
    const int chosen = getopt_long(count, arguments, ":l:r:hV", kOptions, nullptr);
    if (chosen == -1) break;
    if (chosen == ':') {
      if (optopt > ' ' && optopt < 256) return complain(kSeeHelp, {"--", name_of(optopt), ": a value is missing"});
      return complain(kSeeHelp, {arguments[optind - 1], ": a value is missing"});
    }
    if (chosen == '?') {
      if (optopt > ' ' && optopt < 127 && strncmp(arguments[before], "--", 2) != 0) {
        const char letter = static_cast<char>(optopt);
        return complain(kSeeHelp, {"-", std::string_view(&letter, 1), ": no such option"});
      }
      return complain(kSeeHelp, {arguments[optind - 1], ": no such option, or it takes no value"});
    }
    if (!apply(chosen, optarg, options)) return false;
    given[chosen] = true;
  }
  if (optind < count) return complain(kSeeHelp, {"'", arguments[optind], "': an option is expected here"});
  const std::size_t others = static_cast<std::size_t>(std::ranges::count(options.metrics, true));
  if (options.listen_count == others && !add_listener("listen", "127.0.0.1:8080", options)) return false;
  allow_hosts(options);
  if (options.metrics_apart && options.no_metrics)
    return complain(kSeeHelp, {"--metrics-listen and --no-metrics: one of them"});
  return check_needs(given) && check_tls(options) && check_mqtt(options) && check_mcp(options);
}
