#pragma once

#include <coir/http/files.h>
#include <coir/http/server.h>
#include <coir/ledger.h>
#include <coir/net/address.h>
#include <coir/net/log_line.h>
#include <coir/port/limits.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "../mcp/options.h"
#include "settings.h"

// Options holds the values of the command line of coird and of the file of --config. Texts belong to its settings.
struct Options {
  enum class Action : unsigned char {
    serve,
    help,
    version,
    probe,
    print_budget,
    print_config,
    hash_password,
    hash_token
  };

  Action action = Action::serve;
  Settings settings;                // all that was given, the file's before the command line's
  const char* config = nullptr;     // the file of --config
  std::uint32_t config_sum = 0;     // of that file and those that it includes, as they were read
  const char* safe_file = nullptr;  // safe mode while it is there
  bool safe = false;                // these are the options of safe mode: what cannot be opened is left out
  bool check = false;               // all is checked, nothing is served
  const char* user = nullptr;       // the user that coird becomes
  const char* group = nullptr;
  struct Listen {
    coir::Address address;
    bool tls = false;
    bool metrics = false;              // it answers /metrics and /healthz, no more
    const Setting* setting = nullptr;  // null: the default
  };
  Listen listen[coir::http::Server::kMaxListeners];
  bool metrics_apart = false;  // /metrics is answered by those for metrics only
  bool no_metrics = false;
  bool no_sandbox = false;
  std::size_t listen_count = 0;
  // Names by which clients may call this machine, behind them the one that multicast DNS announces.
  static constexpr std::size_t kMaxHosts = 16;
  std::string_view hosts[kMaxHosts + 1] = {};
  std::size_t host_count = 0;
  // Files of certificates and of their keys, in pairs, and of the authorities of clients' certificates.
  static constexpr std::size_t kMaxCertificates = 8;
  const char* certificates[kMaxCertificates] = {};
  const char* keys[kMaxCertificates] = {};
  std::size_t certificate_count = 0;
  std::size_t key_count = 0;
  const char* client_authorities = nullptr;
  const char* state = "/var/lib/coird";
  bool state_given = false;  // then it also has the record of how coird's runs end
  const char* root = nullptr;
  bool dot_files = false;             // of the root, served too
  bool index = false;                 // directories without index.html are listed
  const char* writable = nullptr;     // the folder below the root for PUT and DELETE
  const char* credentials = nullptr;  // the file of those who may ask for anything
  static constexpr std::size_t kMaxCacheRules = 32;
  coir::http::CacheRule cache_rules[kMaxCacheRules] = {};
  std::size_t cache_rule_count = 0;
  static constexpr std::size_t kMaxErrorPages = 16;
  coir::http::ErrorPage error_pages[kMaxErrorPages] = {};
  std::size_t error_page_count = 0;
  // Requests that are passed on: paths below a prefix go to the servers of a list of addresses.
  struct Proxied {
    std::string_view prefix;
    std::string_view urls;
    std::string_view words = {};         // of --fastcgi: the words after the addresses
    std::span<const Setting> keys = {};  // of [route PREFIX] in the file, url among them
    const Setting* setting = nullptr;    // of an application: what names it
  };
  static constexpr std::size_t kMaxProxied = COIR_PROXY && !COIR_NO_ASYNC ? 64 : 1;  // one: without a gateway
  Proxied proxied[kMaxProxied] = {};
  std::size_t proxied_count = 0;
  const char* proxy_authorities = nullptr;  // the file of those that sign their certificates
  const char* proxy_certificate = nullptr;  // shown to those that ask, and its key
  const char* proxy_key = nullptr;
  const char* routes = nullptr;  // the file of routes
  // FastCGI applications answer these: paths below a prefix, or files whose names end in it.
  static constexpr std::size_t kMaxApplications = 4;
  Proxied applications[kMaxApplications] = {};
  std::size_t application_count = 0;
  const char* hash_for = nullptr;  // the user whose password or token is hashed
  const char* mdns = nullptr;      // the name that multicast DNS announces
  char mdns_host[80] = {};         // that with ".local"
  const char* mqtt = nullptr;      // the broker's address
  const char* mqtt_password_file = nullptr;
  const char* mqtt_authorities = nullptr;
  const char* mqtt_discovery = nullptr;  // Home Assistant's prefix
  bool mqtt_commands = false;
  std::chrono::milliseconds mqtt_interval{60'000};
  McpOptions mcp;
  const char* control = nullptr;          // the path of the Unix socket for coirctl
  const char* control_readers = nullptr;  // the group whose members may read by it
  const char* dashboard = nullptr;        // the path of its page
  const char* dashboard_token_file = nullptr;
  const char* sysfs = "/sys";  // the folder with sensors, lights and pins
  bool sysfs_given = false;    // then /dev has no pins
  static constexpr std::size_t kMaxPins = 16;
  const char* pins[kMaxPins] = {};  // that coirctl may use
  std::size_t pin_count = 0;
  const char* watchdog = nullptr;  // the device
  std::chrono::milliseconds watchdog_timeout{30'000};
  coir::LogLevel log_level = coir::LogLevel::info;
  const char* log_file = nullptr;
  std::uint64_t log_size = 256 * 1024;  // of the file, at most
  unsigned log_count = 2;               // full ones that are kept
  const char* syslog = nullptr;         // the socket of its daemon
  const char* trace = nullptr;          // the file for the state changes of fibers
  bool connections_given = false;
  bool active_given = false;
  // wrong complains of the value of an option and returns false: of one in a file by FILE:LINE, as Setting::wrong.
  bool wrong(const char* option, const char* value, const char* cure, std::initializer_list<Word> what) const noexcept;
  // route_key is the key of a section [route PREFIX] that has this value; null: none has.
  const Setting* route_key(std::string_view key, std::string_view value) const noexcept;
  bool any_tls() const noexcept { return std::ranges::any_of(std::span(listen).first(listen_count), &Listen::tls); }
  // only_metrics tells that no address answers anything else; so it is without an address.
  bool only_metrics() const noexcept {
    return std::ranges::all_of(std::span(listen).first(listen_count), &Listen::metrics);
  }
  bool only_tls() const noexcept { return std::ranges::all_of(std::span(listen).first(listen_count), &Listen::tls); }
  bool passes_on() const noexcept { return proxied_count != 0 || routes != nullptr; }
  // handler_stack is for the handler: what is passed on may look up a name on the way, and a
  // tool of --mcp may ask for a document.
  std::size_t handler_stack() const noexcept {
    return (passes_on() || application_count != 0 || mcp.path != nullptr ? 16 : 8) * std::size_t{1024};
  }
  // Ceilings of the ledger, in all and for single accounts; and the memory that the machine is to keep free.
  std::size_t memory = SIZE_MAX;
  struct Ceiling {
    coir::Account* account;
    std::size_t bytes;
  };
  static constexpr std::size_t kMaxCeilings = 8;
  Ceiling accounts[kMaxCeilings] = {};
  std::size_t account_count = 0;
  std::size_t reserve = 0;
  bool reserve_given = false;
  std::chrono::milliseconds drain_timeout{30'000};
  int backlog = coir::port::limits().backlog;
  coir::http::ServerOptions server{.max_connections = coir::port::limits().connections,
                                   .kernel_bytes_per_connection = coir::port::limits().kernel_bytes_per_connection};
};

// ConfigCopy is a copy of the file of --config that was read from `path`.
struct ConfigCopy {
  const char* path;
  std::string_view text;
};

// parse_options reads the command line, and the file that it names by --config. False: lines on standard error have said
// what is wrong, one for each option of the file and one for the first of the command line, or for each if --state or
// --safe-file is given: then all other options count, for safe mode. It reads `copy` instead of that file, but no file that
// the copy includes, does not check that options which need each other are there, and returns whether the copy is in order.
[[nodiscard]] bool parse_options(int count, char** arguments, Options& options,
                                 const ConfigCopy* copy = nullptr) noexcept;

// print_help writes the complete list of options to standard output, print_probe the features of the kernel, and returns the
// exit status. print_config writes them as a file for --config: those
// of `options` that were given, and all others as comments.
void print_help() noexcept;
int print_probe() noexcept;
void print_config(const Options& options) noexcept;
