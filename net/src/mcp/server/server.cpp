#include <coir/mcp.h>

#include <coir/detail/fatal.h>
#include <coir/format.h>
#include <string.h>

#include <algorithm>

#include "base/charged.h"
#include "mcp/server/core.h"

namespace coir::mcp {

// server.cpp: the public face of core.h, and what a source does that has nothing.

void Principal::set(std::string_view name) noexcept {
  size = static_cast<std::uint8_t>(std::min(name.size(), kMost));
  if (size > 0) memcpy(text, name.data(), size);
}

McpServer::McpServer(const McpServerOptions& options) noexcept {
  auto made = create(options);
  if (!made) {
    char line[80];
    format(line, "an McpServer is made of options that do not fit: ", describe(made.error()), '\0');
    coir::detail::fatal(line);
  }
  core_ = std::exchange(made->core_, nullptr);
}

std::expected<McpServer, Error> McpServer::create(const McpServerOptions& options) noexcept {
  auto* const core = construct_charged<ServerCore>(account::mcp, options);
  if (core == nullptr) return std::unexpected(ErrorCode::no_memory);
  McpServer server(core);
  if (auto opened = server.core_->open(); !opened) return std::unexpected(opened.error());
  return server;
}

McpServer::~McpServer() {
  destroy_charged(account::mcp, core_);
}

void McpServer::operator()(http::Exchange& exchange) noexcept {
  core_->serve(exchange);
}

void McpServer::serve_metadata(http::Exchange& exchange) noexcept {
  core_->serve_metadata(exchange);
}

void McpServer::list_changed(ItemKind kind) noexcept {
  core_->listeners.list_changed(list_bit(kind));
}

void McpServer::resource_updated(std::string_view uri) noexcept {
  core_->listeners.updated(uri);
}

bool McpServer::wants(std::string_view uri) const noexcept {
  return core_->listeners.wants(uri);
}

bool McpServer::enable(std::string_view tool, bool on) noexcept {
  return core_->enable(tool, on);
}

McpServerGauges McpServer::gauges() const noexcept {
  return {.sessions = core_->sessions.size(),
          .listeners = core_->listeners.size(),
          .calls = core_->calls.load(std::memory_order_relaxed)};
}

bool Items::add(std::string_view, std::string_view) noexcept {
  return false;
}

bool Source::lists(ItemKind) noexcept {
  return false;
}

void Source::list(ItemKind, Items&) noexcept {}

bool Source::owns(ItemKind, std::string_view) noexcept {
  return false;
}

std::expected<void, Error> Source::watch(std::string_view) noexcept {
  return {};
}

void Source::forward(Call& call, ItemKind, JsonView) noexcept {
  call.refuse(kInternalError, "nobody answers this");
}

void Source::complete(Call&, ItemKind, JsonView) noexcept {}

}  // namespace coir::mcp
