#include "scripts.h"

#include "complaint.h"
#include "gateway.h"

#if COIRD_SCRIPTS
#include <coir/http/path.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

namespace {

using coir::ErrorCode;
using coir::http::Exchange;
using coir::http::FastCgiScript;
using coir::http::Upstreams;
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
std::size_t parse_servers(std::string_view addresses, UpstreamServer (&servers)[Upstreams::kMost],
                          std::string_view& bad) noexcept {
  std::size_t count = 0;
  // A comma at the end has an empty address behind it.
  for (bool more = true; more;) {
    more = addresses.find(',') != addresses.npos;
    bad = next_of(addresses);
    if (count == std::size(servers)) return bad = {}, 0;
    servers[count++].url = bad;
    if (bad.find("://") != bad.npos || !Upstreams::create(bad)) return 0;
  }
  return count;
}

struct ScriptWords {
  std::string_view front = {};  // try=FILE
  bool buffers = true;          // buffer=off
};

// read_words reads what stands behind the addresses. It returns null, or the cure for the word `bad`.
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
    } else if (!bad.empty()) {
      return "buffer=off or try=FILE";
    }
  }
  return nullptr;
}

}  // namespace

bool take_fastcgi(const Setting& setting, Options& options) noexcept {
  const std::string_view all = setting.text;
  const std::size_t equals = all.find('=');
  if (equals == all.npos || (all.front() != '/' && all.front() != '.'))
    return setting.wrong(kScriptForm, {"not PREFIX=ADDRESS"});
  const std::string_view where = all.substr(0, equals);
  if (where.find_first_of("?#%") != where.npos ||
      (is_suffix(where) && (where.size() < 2 || where.find('/') != where.npos)))
    return setting.wrong(kScriptForm, {"neither a path nor the end of a file's name"});
  if (options.application_count == Options::kMaxApplications) return setting.wrong(kScriptForm, {"too many of them"});
  for (const auto& before : std::span(options.applications).first(options.application_count)) {
    if (before.prefix == where) return setting.wrong(kScriptForm, {"this was given before"});
  }
  UpstreamServer servers[Upstreams::kMost];
  std::string_view bad, words = all.substr(equals + 1);
  const std::string_view addresses = words.substr(0, words.find(' '));
  words.remove_prefix(addresses.size());
  if (parse_servers(addresses, servers, bad) == 0) {
    if (bad.data() == nullptr) return setting.wrong("name fewer", {"more than ", Upstreams::kMost, " addresses"});
    return setting.wrong(kScriptForm, {"'", bad, "' is no address of a host and port or of a Unix socket"});
  }
  ScriptWords read;
  if (const char* const cure = read_words(where, words, read, bad); cure != nullptr)
    return setting.wrong(cure, {"'", bad, "'"});
  options.applications[options.application_count++] = {.prefix = where, .urls = addresses, .words = words};
  return true;
}

bool Scripts::open(const Options& options, coir::http::FileTree* files) noexcept {
  files_ = files;
  most_spooled_ = options.server.limits.max_body;
  if (options.root != nullptr) {
    if (::realpath(options.root, root_) == nullptr)
      return complain("--root names a folder", {"--fastcgi: the path of '", options.root, "' is not to be had"});
    // A script's name has a slash in front.
    if (strcmp(root_, "/") == 0) root_[0] = '\0';
  }
  for (const auto& given : std::span(options.applications).first(options.application_count)) {
    if (is_suffix(given.prefix) && files == nullptr)
      return complain("name the folder of the scripts by --root",
                      {"--fastcgi '", given.prefix, "': there are no files"});
    UpstreamServer servers[Upstreams::kMost];
    std::string_view bad;
    const std::size_t servers_count = parse_servers(given.urls, servers, bad);
    auto made = Upstreams::create(std::span(servers).first(servers_count), {.on_change = tell_of_upstream});
    if (!made) return complain("coird --help lists the options", {"--fastcgi '", given.prefix, "': ", made.error()});
    Application& application = applications_[count_++];
    application.where = given.prefix;
    application.addresses = given.urls;
    ScriptWords words;
    static_cast<void>(read_words(given.prefix, given.words, words, bad));
    application.front = words.front;
    application.buffers = words.buffers;
    application.upstreams.emplace(std::move(*made));
  }
  return true;
}

void Scripts::watch() noexcept {
  for (Application& each : std::span(applications_).first(count_)) {
    if (auto watched = each.upstreams->watch(); !watched)
      say({"--fastcgi ", each.where, ": its servers are not watched: ", watched.error()});
  }
}

coir::http::GatewayGroup Scripts::group(std::size_t index) const noexcept {
  const Application& application = applications_[index];
  return {.protocol = "fastcgi", .name = application.where, .upstreams = &*application.upstreams};
}

bool Scripts::serve(Exchange& exchange) noexcept {
  for (Application& each : std::span(applications_).first(count_)) {
    if (is_suffix(each.where) ? serve_suffix(exchange, each) : serve_prefix(exchange, each)) return true;
  }
  return false;
}

// serve_suffix leaves what names no script to the files, which know what is not found.
bool Scripts::serve_suffix(Exchange& exchange, Application& application) noexcept {
  char index[32] = "index";
  if (application.where.size() < sizeof index - sizeof "index")
    application.where.copy(index + 5, application.where.size());
  const auto script = find_script(exchange.request().path, *files_, application.where, index, exchange.path_memory());
  if (script) return forward(exchange, application, *script), true;
  if (script.error() == ErrorCode::not_found && !application.front.empty()) return serve_front(exchange, application);
  if (script.error() == ErrorCode::not_found || script.error() == ErrorCode::invalid) return false;
  // A script's source must never be served because the search for the script failed.
  return exchange.respond_status(503, "Retry-After: 5\r\n"), true;
}

// serve_front has the front controller answer what names neither a file nor a folder with an index.
bool Scripts::serve_front(Exchange& exchange, Application& application) noexcept {
  constexpr std::string_view kIndex = "/index.html";
  const std::string_view raw = exchange.request().path;
  const std::span<char> memory = exchange.path_memory();
  if (memory.size() < raw.size() + 1 + kIndex.size()) return false;
  const auto resolved = coir::http::resolve_path(raw, memory.first(raw.size() + 1));
  if (resolved.status == 400 || resolved.status == 414) return false;
  if (resolved.status == 0) {
    if (!resolved.directory && files_->has(memory.data())) return false;
    memcpy(memory.data() + resolved.relative.size(), kIndex.data(), kIndex.size());
    memory[resolved.relative.size() + kIndex.size()] = '\0';
    if (files_->has(memory.data())) return false;
  }
  const auto script = find_script(application.front, *files_, application.where, {}, memory);
  if (!script) return false;
  forward(exchange, application, *script);
  return true;
}

// serve_prefix takes the file that the path names, if there is one, else the prefix itself, as the script.
bool Scripts::serve_prefix(Exchange& exchange, Application& application) noexcept {
  const std::string_view raw = exchange.request().path;
  const std::span<char> memory = exchange.path_memory();
  std::string_view prefix = application.where;
  if (prefix.ends_with('/')) prefix.remove_suffix(1);
  if (memory.size() < raw.size() + 3) return false;
  const auto resolved = coir::http::resolve_path(raw, memory.subspan(1, raw.size() + 1));
  if (resolved.status != 0) return false;
  memory[0] = '/';
  std::size_t size = resolved.relative == "." ? 0 : resolved.relative.size();
  if (size != 0) memmove(memory.data() + 1, resolved.relative.data(), size);
  if (++size > 1 && resolved.directory) memory[size++] = '/';
  const std::string_view path(memory.data(), size);
  if (!path.starts_with(prefix) || (path.size() != prefix.size() && path[prefix.size()] != '/')) return false;
  const FastCgiScript whole{.name = prefix, .info = path.substr(prefix.size())};
  if (files_ == nullptr) return forward(exchange, application, whole), true;
  // The path is decoded anew, into the same memory.
  const auto script = find_script(raw, *files_, {}, {}, memory);
  if (script) return forward(exchange, application, *script), true;
  if (script.error() != ErrorCode::not_found) return exchange.respond_status(503, "Retry-After: 5\r\n"), true;
  if (resolved.directory) memory[size - 1] = '/';
  forward(exchange, application, {.name = prefix, .info = {memory.data() + prefix.size(), size - prefix.size()}});
  return true;
}

void Scripts::complain_of(void* application, std::string_view line) noexcept {
  say({"--fastcgi ", static_cast<Application*>(application)->where, ": ", line});
}

void Scripts::forward(Exchange& exchange, Application& application, const FastCgiScript& script) noexcept {
  const coir::http::FastCgiRules rules{.root = root_,
                                       .spool = "/tmp",
                                       .most_spooled = most_spooled_,
                                       .buffers = application.buffers,
                                       .complain = complain_of,
                                       .context = &application};
  forward_to_fastcgi(exchange, application.upstreams->group(), script, rules);
}

#endif
