#pragma once

#include <coir/atomic.h>
#include <coir/deadline.h>
#include <coir/mcp.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/first_secret.h"
#include "base/spare_block.h"
#include "mcp/access/rates.h"
#include "mcp/message/text.h"
#include "mcp/sessions/listeners.h"
#include "mcp/sessions/sessions.h"

namespace coir::mcp {

// ServerCore is a server: what it offers, and what it holds of its clients.
class ServerCore {
 public:
  explicit ServerCore(const McpServerOptions& given) noexcept;
  ServerCore(const ServerCore&) = delete;
  ServerCore& operator=(const ServerCore&) = delete;
  ~ServerCore();

  // open checks what is offered and takes memory. Errors: as McpServer::create.
  std::expected<void, Error> open() noexcept;

  // endpoint.cpp
  void serve(http::Exchange& exchange) noexcept;
  void serve_metadata(http::Exchange& exchange) noexcept;

  // offers.cpp: what is offered
  const Tool* find_tool(std::string_view name) const noexcept;  // that is switched on
  const Prompt* find_prompt(std::string_view name) const noexcept;
  const Resource* find_resource(std::string_view uri) const noexcept;
  const ResourceTemplate* find_template(std::string_view uri_template) const noexcept;
  Source* find_source(ItemKind kind, std::string_view name) const noexcept;
  bool offers(ItemKind kind) const noexcept;
  bool is_on(std::size_t tool) const noexcept { return switches_[tool].load(std::memory_order_relaxed); }
  bool enable(std::string_view tool, bool on) noexcept;
  bool knows_uri(std::string_view uri) const noexcept;
  // watch adds a resource to what a client wants to hear of, and tells the source that owns it. Errors:
  // Listeners::watch's, and Source::watch's.
  std::expected<void, Error> watch(Interests& interests, std::string_view uri, std::size_t most) noexcept;

  const McpServerOptions options;
  Listeners listeners;
  Sessions sessions;
  Rates rates;
  // may_ask counts a request of a principal. False: it has made too many of late.
  bool may_ask(const Principal& who) noexcept { return !rates.limits() || rates.take(who.name(), monotonic_ns()); }
  Atomic<std::size_t> calls = 0;
  SpareBlock spare;  // of the last POST that has ended
  // has_key has the key of states there. False: the kernel has no random numbers to draw it from, after some time.
  bool has_key() noexcept { return !options.state_key.empty() || random_key_.draw(); }
  // state_key is the key once has_key has said so.
  std::string_view state_key() const noexcept {
    return options.state_key.empty() ? random_key_.view() : options.state_key;
  }
  // server_info is the JSON of an Implementation.
  std::string_view server_info() const noexcept { return server_info_.view(); }

 private:
  std::expected<void, Error> check_names() const noexcept;
  bool write_server_info() noexcept;

  Atomic<bool>* switches_ = nullptr;  // a tool each: it is on
  Text server_info_{{}, 16 * 1024};
  FirstSecret random_key_;
};

// matches_template tells whether a URI is of a template, and finds what stands for each parameter: `parameter` of them.
bool matches_template(std::string_view uri_template, std::string_view uri) noexcept;
std::string_view template_parameter(std::string_view uri_template, std::string_view uri,
                                    std::string_view name) noexcept;

}  // namespace coir::mcp
