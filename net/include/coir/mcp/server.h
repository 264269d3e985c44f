#pragma once

#include <coir/port/needs_fibers.h>

#include <coir/error.h>
#include <coir/http/exchange.h>
#include <coir/ledger.h>
#include <coir/mcp/prompt.h>
#include <coir/mcp/resource.h>
#include <coir/mcp/source.h>
#include <coir/mcp/tool.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string_view>
#include <utility>

namespace coir::account {
extern Account mcp;  // calls, sessions and listeners
}

namespace coir::mcp {

class ServerCore;

// Principal is who makes a request, as ServerOptions::authorize finds out; empty: anybody.
struct Principal {
  static constexpr std::size_t kMost = 63;

  char text[kMost] = {};
  std::uint8_t size = 0;

  std::string_view name() const noexcept { return {text, size}; }
  // set takes a name, of a longer one the first kMost bytes.
  void set(std::string_view name) noexcept;
};

enum class Verdict : std::uint8_t {
  allowed,
  unknown,      // 401: there is no token, or nobody knows it
  forbidden,    // 403: the token does not allow this
  unavailable,  // 503: nobody can tell now
};

// Authorize judges a request by its bearer token, an absent view (data() == nullptr) where it brings none. From the
// request's fiber; it may wait.
using Authorize = Verdict(void* context, const http::Request& request, std::string_view token, Principal& who);

// Audit is one line of what has been done, valid while the hook runs.
struct Audit {
  std::string_view who;      // the principal; empty: anybody
  std::string_view method;   // "tools/call"
  std::string_view name;     // of the tool, prompt or resource; empty where there is none
  std::string_view outcome;  // "ok", "failed" (the tool says so), "asked" (for input), "refused", "cancelled", ...
  int code = 0;              // of the error that was answered
  std::chrono::milliseconds took{0};
};

// ServerOptions is what a server offers and to whom. All that it refers to outlives the server.
struct ServerOptions {
  std::string_view name = "coir";
  std::string_view title = {};
  std::string_view version = COIR_VERSION;
  std::string_view instructions = {};  // for the model: how to use the server
  std::string_view website = {};
  std::span<const Icon> icons = {};

  std::span<const Tool> tools = {};
  std::span<const Resource> resources = {};
  std::span<const ResourceTemplate> templates = {};
  std::span<const Prompt> prompts = {};
  std::span<Source* const> sources = {};
  void* context = nullptr;  // for Call::context, and the hooks
  // Only the tools that are named here are offered, unless `every_tool`; Server::enable changes it.
  std::span<const std::string_view> enabled_tools = {};
  bool every_tool = true;

  // Origins of pages that may send requests beside the server's own, as browsers write them; "*" is any. By which names
  // the server may be called says http::ServerOptions::allow_hosts.
  std::span<const std::string_view> allow_origins = {};
  // With a token, requests must bring it, compared in constant time. With authorize, that judges instead, as by
  // coir/mcp/access.h.
  std::string_view token = {};
  Authorize* authorize = nullptr;
  void (*audit)(void* context, const Audit& line) = nullptr;
  // OAuth 2.1 (RFC 9728): this server's URL as a resource, and who issues tokens for it; empty: no document.
  std::string_view resource_url = {};
  std::span<const std::string_view> authorization_servers = {};
  std::span<const std::string_view> scopes = {};
  std::uint32_t calls_per_second = 0;  // of each principal, and of all who are anybody; 0: no limit

  JsonLimits request = {.max_bytes = 64 * 1024, .max_depth = 32};
  std::size_t max_values = 4096;  // values and names in a request
  std::size_t max_result_bytes = 4 * 1024 * 1024;
  std::chrono::milliseconds call_deadline{60'000};
  std::chrono::milliseconds keep_alive{15'000};     // of streams that rest: a comment
  std::uint32_t page_items = 100;                   // of a list
  std::chrono::milliseconds list_lifetime{60'000};  // ttlMs of lists
  bool private_lists = false;                       // what is listed depends on who asks: sources may

  // Of the legacy era. One session more takes the place of the one that has been silent for longest.
  std::size_t max_sessions = 256;
  std::chrono::milliseconds session_lifetime{3'600'000};  // without a request
  std::size_t max_stream_bytes = 64 * 1024;               // of a stream's events, kept for a client that comes again
  std::chrono::milliseconds stream_lifetime{30'000};      // after the call's end
  std::chrono::milliseconds retry{1'000};                 // before a client comes again

  // Streams that listen, of either era; one more is answered 503.
  std::size_t max_listeners = SIZE_MAX;
  // Signs what keep_state keeps: any bytes; empty: made at random, so that a restart forgets. In a build without TLS
  // nothing is kept: a call that wants it is refused.
  std::string_view state_key = {};
  std::chrono::seconds state_lifetime{600};
};

// ServerGauges is a snapshot of what a server holds.
struct ServerGauges {
  std::size_t sessions;   // of the legacy era
  std::size_t listeners;  // streams that rest
  std::size_t calls;      // under way
};

// Server answers MCP (Model Context Protocol) over Streamable HTTP, both eras at one path: 2026-07-28, which keeps
// nothing between requests, and 2025-11-25, 2025-06-18 and 2025-03-26 with their sessions.
//
//   auto tools = mcp::Server::create({.name = "board", .tools = kTools});
//   auto app = http::routes(http::any<"/mcp">(*tools));
//
// A call runs on its request's fiber, whose stack is http::ServerOptions::handler_stack, of which the server takes 5
// KB beside what http/exchange.h says. Closing the connection cancels a call of 2026-07-28 and leaves one of the legacy
// era running, as their revisions say. Without waiting clients a server holds its tables alone; one of 2026-07-28
// leaves nothing behind.
//
// Used by one http::Server, and destroyed after that has stopped. Any fiber or thread may call the functions.
class Server {
 public:
  // create takes memory for the tables. Errors: no_memory, invalid (a tool without a function, two of one name, a name
  // that the protocol does not allow, a limit of 0), unsupported (a state_key, in a build without TLS, which signs none).
  [[nodiscard]] static std::expected<Server, Error> create(const ServerOptions& options) noexcept;

  Server(Server&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
  Server& operator=(Server&&) = delete;
  ~Server();

  // serve answers a request, whatever its method. From a handler, which returns afterwards.
  void serve(http::Exchange& exchange) noexcept;
  void operator()(http::Exchange& exchange) noexcept { serve(exchange); }
  // serve_metadata answers with the document of RFC 9728, at /.well-known/oauth-protected-resource and below; 404 where
  // there is none.
  void serve_metadata(http::Exchange& exchange) noexcept;

  // Clients that listen are told: that a list has changed, or a resource. Never waits.
  void list_changed(ItemKind kind) noexcept;
  void resource_updated(std::string_view uri) noexcept;

  // enable switches a tool on or off, and tells who listens. False: there is none of that name.
  bool enable(std::string_view tool, bool on) noexcept;

  ServerGauges gauges() const noexcept;

 private:
  explicit Server(ServerCore* core) noexcept : core_(core) {}

  ServerCore* core_;
};

}  // namespace coir::mcp
