#include <coir/mcp/server.h>

#include <string.h>

#include <algorithm>

#include "mcp/server/core.h"
#include "socket/charged.h"

namespace coir::mcp {

// server.cpp: the public face of core.h.

void Principal::set(std::string_view name) noexcept {
  size = static_cast<std::uint8_t>(std::min(name.size(), kMost));
  if (size > 0) memcpy(text, name.data(), size);
}

std::expected<Server, Error> Server::create(const ServerOptions& options) noexcept {
  auto* const core = construct_charged<ServerCore>(account::mcp, options);
  if (core == nullptr) return std::unexpected(ErrorCode::no_memory);
  Server server(core);
  if (auto opened = server.core_->open(); !opened) return std::unexpected(opened.error());
  return server;
}

Server::~Server() {
  destroy_charged(account::mcp, core_);
}

void Server::serve(http::Exchange& exchange) noexcept {
  core_->serve(exchange);
}

void Server::serve_metadata(http::Exchange& exchange) noexcept {
  core_->serve_metadata(exchange);
}

void Server::list_changed(ItemKind kind) noexcept {
  core_->listeners.list_changed(list_bit(kind));
}

void Server::resource_updated(std::string_view uri) noexcept {
  core_->listeners.updated(uri);
}

bool Server::enable(std::string_view tool, bool on) noexcept {
  return core_->enable(tool, on);
}

ServerGauges Server::gauges() const noexcept {
  return {.sessions = core_->sessions.size(),
          .listeners = core_->listeners.size(),
          .calls = core_->calls.load(std::memory_order_relaxed)};
}

}  // namespace coir::mcp
