// FastCgi, of coir/http/fastcgi.h: which script answers.
#include "fastcgi/fast_cgi.h"

#include <coir/detail/accounts.h>
#include <coir/format.h>
#include <coir/http/files.h>
#include <coir/http/wire/path.h>
#include <string.h>

#include "base/charged.h"

namespace coir::http {

FastCgiState::FastCgiState(std::span<const UpstreamServer> servers, const FastCgiOptions& given) noexcept
    : options(given) {
  if (!options.suffix.empty() && options.files == nullptr) {
    note(options.suffix, "a suffix wants files");
    return;
  }
  const UpstreamOptions how{.on_change = options.on_change};
  for (const UpstreamServer& each : servers) {
    if (each.url.find("://") != std::string_view::npos || !Upstreams::create({&each, 1}, how)) {
      note(each.url, "no address of a host and port or of a Unix socket");
      return;
    }
  }
  auto made = Upstreams::create(servers, how);
  if (made) {
    upstreams.emplace(std::move(*made));
  } else {
    note(servers.empty() ? "" : servers.front().url, describe(made.error()));
  }
}

void FastCgiState::note(std::string_view word, std::string_view what) noexcept {
  problem_bytes_ = static_cast<std::uint8_t>(format(problem_, "FastCGI at '", word.substr(0, 80), "': ", what).size());
}

bool FastCgiState::serve(Exchange& exchange) noexcept {
  return options.suffix.empty() ? serve_prefix(exchange) : serve_suffix(exchange);
}

// serve_suffix leaves what names no script to the files, which know what is not found.
bool FastCgiState::serve_suffix(Exchange& exchange) noexcept {
  char index[32] = "index";
  if (options.suffix.size() < sizeof index - sizeof "index") options.suffix.copy(index + 5, options.suffix.size());
  const auto script =
      find_script(exchange.request().path, *options.files, options.suffix, index, exchange.path_memory());
  if (script) return forward(exchange, *script);
  if (script.error() == ErrorCode::not_found && !options.front.empty()) return serve_front(exchange);
  if (script.error() == ErrorCode::not_found || script.error() == ErrorCode::invalid) return false;
  if (script.error() == ErrorCode::unsupported) return exchange.respond_status(404), true;
  // The source of a script must not be shown because it could not be looked for.
  return exchange.respond_status(503, "Retry-After: 5\r\n"), true;
}

// serve_front has the front controller answer what names neither a file nor a folder with an index.
bool FastCgiState::serve_front(Exchange& exchange) noexcept {
  constexpr std::string_view kIndex = "/index.html";
  const std::string_view raw = exchange.request().path;
  const std::span<char> memory = exchange.path_memory();
  if (memory.size() < raw.size() + 1 + kIndex.size()) return false;
  const auto resolved = resolve_path(raw, memory.first(raw.size() + 1));
  if (resolved.status == 400 || resolved.status == 414) return false;
  if (resolved.status == 0) {
    if (!resolved.directory && options.files->has(memory.data())) return false;
    memcpy(memory.data() + resolved.relative.size(), kIndex.data(), kIndex.size());
    memory[resolved.relative.size() + kIndex.size()] = '\0';
    if (options.files->has(memory.data())) return false;
  }
  const auto script = find_script(options.front, *options.files, options.suffix, {}, memory);
  return script && forward(exchange, *script);
}

// serve_prefix takes the file that the path names, if there is one, else the prefix itself, as the script.
bool FastCgiState::serve_prefix(Exchange& exchange) noexcept {
  const std::string_view raw = exchange.request().path;
  const std::span<char> memory = exchange.path_memory();
  std::string_view prefix = options.prefix;
  if (prefix.ends_with('/')) prefix.remove_suffix(1);
  if (memory.size() < raw.size() + 3) return false;
  const auto resolved = resolve_path(raw, memory.subspan(1, raw.size() + 1));
  if (resolved.status != 0) return false;
  memory[0] = '/';
  std::size_t size = resolved.relative == "." ? 0 : resolved.relative.size();
  if (size != 0) memmove(memory.data() + 1, resolved.relative.data(), size);
  if (++size > 1 && resolved.directory) memory[size++] = '/';
  const std::string_view path(memory.data(), size);
  if (!path.starts_with(prefix) || (path.size() != prefix.size() && path[prefix.size()] != '/')) return false;
  if (options.files == nullptr) return forward(exchange, {.name = prefix, .info = path.substr(prefix.size())});
  // The path is decoded anew, into the same memory.
  const auto script = find_script(raw, *options.files, {}, {}, memory);
  if (script) return forward(exchange, *script);
  if (script.error() != ErrorCode::not_found) return exchange.respond_status(503, "Retry-After: 5\r\n"), true;
  if (resolved.directory) memory[size - 1] = '/';
  return forward(exchange, {.name = prefix, .info = {memory.data() + prefix.size(), size - prefix.size()}});
}

bool FastCgiState::forward(Exchange& exchange, const FastCgiScript& script) noexcept {
  forward_to_fastcgi(exchange, upstreams->group(), script, options, &counters);
  return true;
}

FastCgi::FastCgi(std::span<const UpstreamServer> servers, const FastCgiOptions& options) noexcept
    : state_(construct_charged<FastCgiState>(account::http, servers, options)) {}

FastCgi::~FastCgi() {
  destroy_charged(account::http, state_);
}

std::string_view FastCgi::problem() const noexcept {
  return state_ != nullptr ? state_->problem() : "no memory for FastCGI";
}

bool FastCgi::serve(Exchange& exchange) noexcept {
  if (problem().empty()) {
    if (state_->options.on_change) static_cast<void>(state_->upstreams->watch());
    return state_->serve(exchange);
  }
  exchange.respond_status(503);
  return true;
}

void FastCgi::operator()(Exchange& exchange) noexcept {
  if (!serve(exchange)) exchange.respond_status(404);
}

std::expected<void, Error> FastCgi::watch() noexcept {
  if (!problem().empty()) return std::unexpected(Error{ErrorCode::invalid});
  return state_->upstreams->watch();
}

const FastCgiCounters& FastCgi::counters() const noexcept {
  return state_->counters;
}

}  // namespace coir::http
