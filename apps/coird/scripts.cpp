#include "scripts.h"

#include "complaint.h"
#include "gateway.h"

#if COIRD_SCRIPTS
#include <coir/quantity.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

namespace {

using coir::http::FastCgi;
using coir::http::UpstreamServer;

constexpr const char* kScriptForm = "such as .php=unix:/run/php-fpm.sock or /app=127.0.0.1:9000";

// next_of takes the next of "A,B" off `text`.
std::string_view next_of(std::string_view& text) noexcept {
  const std::string_view one = text.substr(0, text.find(','));
  text.remove_prefix(std::min(one.size() + 1, text.size()));
  return one;
}

bool is_suffix(std::string_view where) noexcept {
  return where.starts_with('.');
}

// parse_servers reads addresses into `servers` and returns how many. 0: `bad` is no address, or empty where there are too
// many of them.
std::size_t parse_servers(std::string_view addresses, UpstreamServer (&servers)[UpstreamServer::kMost],
                          std::string_view& bad) noexcept {
  std::size_t count = 0;
  // A comma at the end has an empty address behind it.
  for (bool more = true; more;) {
    more = addresses.find(',') != addresses.npos;
    bad = next_of(addresses);
    if (count == std::size(servers)) return bad = {}, 0;
    servers[count++].url = bad;
    if (!FastCgi(UpstreamServer(bad)).problem().empty()) return 0;
  }
  return count;
}

struct ScriptWords {
  std::string_view front = {};                                                     // try=FILE
  bool buffers = true;                                                             // buffer=off
  std::chrono::milliseconds first_byte = coir::http::FastCgiOptions().first_byte;  // first-byte=TIME
  std::uint64_t max_body = UINT64_MAX;                                             // max-body=SIZE
};

// read_words reads the words after the addresses. It returns null, or the cure for the word `bad`.
const char* read_words(std::string_view where, std::string_view text, ScriptWords& words,
                       std::string_view& bad) noexcept {
  while (!text.empty()) {
    bad = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(bad.size() + 1, text.size()));
    if (bad == "buffer=off" || bad == "buffer=on") {
      words.buffers = bad == "buffer=on";
    } else if (bad.starts_with("try=")) {
      words.front = bad.substr(4);
      if (!is_suffix(where)) return "below a path all is the application's; try is for .php and such";
      if (!words.front.starts_with('/') || !words.front.ends_with(where) || words.front.find('%') != words.front.npos)
        return "a file below --root that the application answers, such as try=/index.php";
    } else if (bad.starts_with("first-byte=")) {
      const auto time = coir::parse_time(bad.substr(bad.find('=') + 1));
      if (!time) return "a time, such as first-byte=90s";
      words.first_byte = *time;
    } else if (bad.starts_with("max-body=")) {
      const auto size = coir::parse_size(bad.substr(bad.find('=') + 1));
      if (!size) return "a size, such as max-body=64K";
      words.max_body = *size;
    } else if (!bad.empty()) {
      return "buffer=off, first-byte=TIME, max-body=SIZE or try=FILE";
    }
  }
  return nullptr;
}

}  // namespace

bool is_application_key(std::string_view key) noexcept {
  return key == "buffer" || key == "first-byte" || key == "max-body" || key == "try";
}

bool take_fastcgi(const Setting& setting, Options& options) noexcept {
  const std::string_view all = setting.text;
  const std::size_t equals = all.find('=');
  if (equals == all.npos || (all.front() != '/' && all.front() != '.'))
    return setting.wrong(kScriptForm, {"not PREFIX=ADDRESS"});
  const std::string_view where = all.substr(0, equals);
  if (where.find_first_of("?#%") != where.npos ||
      (is_suffix(where) && (where.size() < 2 || where.find('/') != where.npos)))
    return setting.wrong(kScriptForm, {"neither a path nor the end of a file's name"});
  if (options.application_count == Options::kMaxApplications)
    return setting.wrong(kScriptForm, {"more than ", Options::kMaxApplications});
  for (const auto& before : std::span(options.applications).first(options.application_count)) {
    if (before.prefix == where) return setting.wrong(kScriptForm, {"this was given before"});
  }
  UpstreamServer servers[UpstreamServer::kMost];
  std::string_view bad, words = all.substr(equals + 1);
  const std::string_view addresses = words.substr(0, words.find(' '));
  words.remove_prefix(addresses.size());
  if (parse_servers(addresses, servers, bad) == 0) {
    if (bad.data() == nullptr) return setting.wrong("name fewer", {"more than ", UpstreamServer::kMost, " addresses"});
    return setting.wrong(kScriptForm, {"'", bad, "' is no address of a host and port or of a Unix socket"});
  }
  ScriptWords read;
  if (const char* const cure = read_words(where, words, read, bad); cure != nullptr)
    return setting.wrong(cure, {"'", bad, "'"});
  options.applications[options.application_count++] = {
      .prefix = where, .urls = addresses, .words = words, .setting = &setting};
  return true;
}

bool Scripts::open(const Options& options, coir::http::FileTree* files) noexcept {
  if (options.root != nullptr) {
    if (::realpath(options.root, root_) == nullptr)
      return options.wrong("root", options.root, "--fastcgi needs the path of a folder",
                           {"its path cannot be resolved"});
    // A script's name has a slash in front.
    if (strcmp(root_, "/") == 0) root_[0] = '\0';
  }
  for (const auto& given : std::span(options.applications).first(options.application_count)) {
    if (is_suffix(given.prefix) && files == nullptr)
      return given.setting->wrong("name the folder of the scripts by --root", {"without root"});
    UpstreamServer servers[UpstreamServer::kMost];
    std::string_view bad;
    const std::size_t servers_count = parse_servers(given.urls, servers, bad);
    ScriptWords words;
    static_cast<void>(read_words(given.prefix, given.words, words, bad));
    coir::http::FastCgiOptions how{.files = files,
                                   .front = words.front,
                                   .root = root_,
                                   .first_byte = words.first_byte,
                                   .spool = "/tmp",
                                   .most_spooled = options.server.limits.max_body,
                                   .buffers = words.buffers,
                                   .max_body = words.max_body,
                                   .complain =
                                       [prefix = given.prefix](std::string_view line) {
                                         static constinit coir::LogSource scripts(
                                             "fastcgi", {.burst = 200, .spacing = std::chrono::milliseconds(50)});
                                         say(scripts, coir::LogLevel::warning, {"--fastcgi ", prefix, ": ", line});
                                       },
                                   .on_change = tell_of_upstream};
    (is_suffix(given.prefix) ? how.suffix : how.prefix) = given.prefix;
    auto& made = applications_[count_].emplace(std::span<const UpstreamServer>(servers, servers_count), how);
    if (!made.problem().empty()) return given.setting->wrong({made.problem()});
    ++count_;
  }
  return true;
}

void Scripts::watch() noexcept {
  for (auto& each : std::span(applications_).first(count_)) {
    if (auto watched = each->watch(); !watched) warn({"--fastcgi: not all servers are watched: ", watched.error()});
  }
}

bool Scripts::serve(coir::http::Exchange& exchange) noexcept {
  for (auto& each : std::span(applications_).first(count_)) {
    if (each->serve(exchange)) return true;
  }
  return false;
}

#endif
