#include <stdlib.h>

#include <memory>
#include <new>

#include "http/text/characters.h"
#include "mcp/server/core.h"

namespace coir::mcp {
namespace {

// offers.cpp: what core.h's server offers.

bool is_tool_name(std::string_view name) noexcept {
  if (name.empty() || name.size() > 128) return false;
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || http::is_digit(c);
    if (!letter && c != '_' && c != '-' && c != '.') return false;
  }
  return true;
}

template <class T, class Name>
const T* find_in(std::span<const T> items, std::string_view wanted, Name name) noexcept {
  for (const T& each : items) {
    if (name(each) == wanted) return &each;
  }
  return nullptr;
}

}  // namespace

ServerCore::ServerCore(const McpServerOptions& given) noexcept
    : options(given),
      listeners({.keep_alive = given.keep_alive, .retry = given.retry, .most = given.max_listeners}),
      sessions(given.max_sessions, given.session_lifetime, listeners),
      rates(given.calls_per_second) {
  listeners.release_session = [](void* sessions_of, Session* session) noexcept {
    static_cast<Sessions*>(sessions_of)->release(session);
  };
  listeners.context = &sessions;
}

ServerCore::~ServerCore() {
  listeners.end_all();
  if (switches_ == nullptr) return;
  free(switches_);
  account::mcp.refund(options.tools.size() * sizeof *switches_);
}

std::expected<void, Error> ServerCore::open() noexcept {
  if (auto sound = check_names(); !sound) return sound;
  if (!COIR_TLS && !options.state_key.empty()) return std::unexpected(ErrorCode::unsupported);
  if (!options.tools.empty()) {
    const std::size_t bytes = options.tools.size() * sizeof *switches_;
    if (!account::mcp.charge(bytes)) return std::unexpected(ErrorCode::no_memory);
    switches_ = static_cast<Atomic<bool>*>(malloc(bytes));
    if (switches_ == nullptr) {
      account::mcp.refund(bytes);
      return std::unexpected(ErrorCode::no_memory);
    }
    for (std::size_t i = 0; i < options.tools.size(); ++i) {
      bool on = options.every_tool;
      for (const std::string_view name : options.enabled_tools) on = on || name == options.tools[i].marks.name;
      new (&switches_[i]) Atomic<bool>(on);
    }
  }
  if (!sessions.open() || !write_server_info()) return std::unexpected(ErrorCode::no_memory);
  return {};
}

std::expected<void, Error> ServerCore::check_names() const noexcept {
  const auto invalid = std::unexpected(Error{ErrorCode::invalid});
  const McpServerOptions& given = options;
  if (given.max_sessions == 0 || given.page_items == 0 || given.request.max_bytes == 0 || given.max_values == 0 ||
      given.max_result_bytes == 0 || given.request.max_depth == 0 || given.request.max_depth > 48 ||
      given.name.empty()) {
    return invalid;
  }
  for (std::size_t i = 0; i < given.tools.size(); ++i) {
    const Tool& tool = given.tools[i];
    if (tool.run == nullptr || !is_tool_name(tool.marks.name)) return invalid;
    for (std::size_t j = 0; j < i; ++j) {
      if (given.tools[j].marks.name == tool.marks.name) return invalid;
    }
  }
  for (const Prompt& each : given.prompts) {
    if (each.get == nullptr || each.name.empty()) return invalid;
  }
  for (const Resource& each : given.resources) {
    if (each.read == nullptr || each.uri.empty() || each.name.empty()) return invalid;
  }
  for (const ResourceTemplate& each : given.templates) {
    if (each.read == nullptr || each.uri_template.empty() || each.name.empty()) return invalid;
  }
  return {};
}

bool ServerCore::write_server_info() noexcept {
  JsonWriter out(server_info_);
  out.object().member("name", options.name).member("version", options.version);
  if (!options.title.empty()) out.member("title", options.title);
  if (!options.website.empty()) out.member("websiteUrl", options.website);
  out.end();
  return out.finish().has_value();
}

const Tool* ServerCore::find_tool(std::string_view name) const noexcept {
  for (std::size_t i = 0; i < options.tools.size(); ++i) {
    if (options.tools[i].marks.name == name) return is_on(i) ? &options.tools[i] : nullptr;
  }
  return nullptr;
}

const Prompt* ServerCore::find_prompt(std::string_view name) const noexcept {
  return find_in(options.prompts, name, [](const Prompt& each) { return each.name; });
}

const Resource* ServerCore::find_resource(std::string_view uri) const noexcept {
  return find_in(options.resources, uri, [](const Resource& each) { return each.uri; });
}

const ResourceTemplate* ServerCore::find_template(std::string_view text) const noexcept {
  return find_in(options.templates, text, [](const ResourceTemplate& each) { return each.uri_template; });
}

Source* ServerCore::find_source(ItemKind kind, std::string_view name) const noexcept {
  for (Source* const each : options.sources) {
    if (each->owns(kind, name)) return each;
  }
  return nullptr;
}

bool ServerCore::offers(ItemKind kind) const noexcept {
  const bool own = kind == ItemKind::tools     ? !options.tools.empty()
                   : kind == ItemKind::prompts ? !options.prompts.empty()
                                               : !options.resources.empty() || !options.templates.empty();
  if (own) return true;
  for (Source* const each : options.sources) {
    if (each->lists(kind) || (kind == ItemKind::resources && each->lists(ItemKind::templates))) return true;
  }
  return false;
}

bool ServerCore::enable(std::string_view tool, bool on) noexcept {
  for (std::size_t i = 0; i < options.tools.size(); ++i) {
    if (options.tools[i].marks.name != tool) continue;
    if (switches_[i].exchange(on, std::memory_order_relaxed) != on) listeners.list_changed(kToolsBit);
    return true;
  }
  return false;
}

std::expected<void, Error> ServerCore::watch(Interests& interests, std::string_view uri, std::size_t most) noexcept {
  const auto added = listeners.watch(interests, uri, most);
  if (!added) return std::unexpected(added.error());
  if (find_resource(uri) != nullptr) return {};
  std::expected<void, Error> watched;
  // Once the source has been told it may ask whether anybody wants the resource.
  if (Source* const source = find_source(ItemKind::resources, uri)) watched = source->watch(uri);
  if (!watched && *added) listeners.unwatch(interests, uri);
  return watched;
}

bool ServerCore::knows_uri(std::string_view uri) const noexcept {
  if (find_resource(uri) != nullptr || find_source(ItemKind::resources, uri) != nullptr) return true;
  for (const ResourceTemplate& each : options.templates) {
    if (matches_template(each.uri_template, uri)) return true;
  }
  return false;
}

namespace {

// walk goes through a template and a URI side by side. A parameter takes as much as it can without a '/' and without
// the first character that follows it in the template.
template <class Found>
bool walk(std::string_view pattern, std::string_view uri, Found found) noexcept {
  while (!pattern.empty()) {
    if (pattern.front() != '{') {
      if (uri.empty() || uri.front() != pattern.front()) return false;
      pattern.remove_prefix(1);
      uri.remove_prefix(1);
      continue;
    }
    const std::size_t end = pattern.find('}');
    if (end == std::string_view::npos) return false;
    const std::string_view name = pattern.substr(1, end - 1);
    pattern.remove_prefix(end + 1);
    std::size_t size = 0;
    while (size < uri.size() && uri[size] != '/' && (pattern.empty() || uri[size] != pattern.front())) ++size;
    if (size == 0) return false;
    found(name, uri.substr(0, size));
    uri.remove_prefix(size);
  }
  return uri.empty();
}

}  // namespace

bool matches_template(std::string_view uri_template, std::string_view uri) noexcept {
  return walk(uri_template, uri, [](std::string_view, std::string_view) {});
}

std::string_view template_parameter(std::string_view uri_template, std::string_view uri,
                                    std::string_view name) noexcept {
  std::string_view value;
  walk(uri_template, uri, [&](std::string_view each, std::string_view text) {
    if (each == name) value = text;
  });
  return value;
}

}  // namespace coir::mcp
