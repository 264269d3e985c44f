#pragma once

// The one header of an MCP server: what agents are offered, and McpServer, which answers them.
//
//   #include <coir/http.h>
//   #include <coir/mcp.h>
//   using namespace coir;
//
//   struct Pin {
//     int pin = 0;
//     bool high = true;
//   };
//   constexpr auto kPin = mcp::fields(mcp::field<&Pin::pin>("pin", "number of the pin").between(0, 31),
//                                     mcp::field<&Pin::high>("high", "its level").optional());
//   void set_pin(mcp::Call& call, const Pin& wanted) { call.text(wanted.high ? "high" : "low"); }
//
//   constexpr mcp::Tool kTools[] = {mcp::tool<set_pin, kPin>({.name = "set_pin", .description = "Sets a pin"})};
//
//   int main() {
//     mcp::McpServer tools{{.name = "board", .tools = kTools}};
//     auto app = http::routes(http::any<"/mcp">(tools));
//     return http::serve({.listen = ":8080"}, app);
//   }

#include <coir/port/needs_fibers.h>

#include <coir/callable.h>
#include <coir/error.h>
#include <coir/http/exchange.h>
#include <coir/ledger.h>
#include <coir/mcp/detail/account.h>
#include <coir/mcp/detail/call.h>
#include <coir/mcp/detail/tool.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string_view>
#include <utility>

namespace coir::mcp {

class ServerCore;

// Complete suggests values for an argument of a prompt, or a parameter of a template: by call.suggest those that begin
// as `value` does. call.argument has what the client knows of the others.
using Complete = void(Call& call, std::string_view argument, std::string_view value);

// Resource is something that clients read by its URI.
//
//   void read_log(mcp::Call& call) { call.text(latest_lines()); }
//
//   constexpr mcp::Resource kResources[] = {
//       {.uri = "board://log", .name = "log", .media_type = "text/plain", .read = read_log},
//   };
struct Resource {
  std::string_view uri;
  std::string_view name;
  std::string_view title = {};
  std::string_view description = {};
  std::string_view media_type = {};
  std::span<const Icon> icons = {};
  void (*read)(Call& call) = nullptr;  // by call.text or call.blob
};

// ResourceTemplate is a family of resources: "board://pin/{number}". A {parameter} stands for one or more characters
// but '/'; call.argument("number") is what stood there.
struct ResourceTemplate {
  std::string_view uri_template;
  std::string_view name;
  std::string_view title = {};
  std::string_view description = {};
  std::string_view media_type = {};
  std::span<const Icon> icons = {};
  void (*read)(Call& call) = nullptr;
  Complete* complete = nullptr;
};

struct PromptArgument {
  std::string_view name;
  std::string_view description = {};
  bool required = false;
};

// Prompt is a text that users choose, made of their arguments:
//
//   void explain(mcp::Call& call) { call.text(page_of_manual(call.argument("topic"))); }
//
// Each piece of content is a message, the user's unless call.role says otherwise.
struct Prompt {
  std::string_view name;
  std::string_view title = {};
  std::string_view description = {};
  std::span<const PromptArgument> arguments = {};
  std::span<const Icon> icons = {};
  void (*get)(Call& call) = nullptr;
  Complete* complete = nullptr;
};

// ItemKind is what a server lists.
enum class ItemKind : std::uint8_t { tools, resources, templates, prompts };
inline constexpr std::size_t kItemKinds = 4;

// Items takes the items of a list, which may come page by page.
class Items {
 public:
  // add takes an item, a JSON object that is valid for that long. `name` is its name, a resource's URI. False: the page
  // is full, and the source may stop; it is asked for the rest from the start.
  virtual bool add(std::string_view name, std::string_view json) noexcept;

 protected:
  constexpr Items() noexcept = default;
  ~Items() = default;
};

// Source has tools, resources and prompts that a server offers beside its own: those of servers that are mounted. It
// outlives the server, and is asked by any fiber, by several at a time. If the server has the name itself, too, the
// server's counts. Functions may wait, within the caller's scope. (server.cpp)
class Source {
 public:
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  // lists tells whether the source may have items of this kind at all.
  virtual bool lists(ItemKind kind) noexcept;
  // list hands out all items of a kind, in an order that stays. Items that are unavailable at the moment are left out.
  virtual void list(ItemKind kind, Items& into) noexcept;
  // owns tells whether a call of this name, or a read of this URI, is the source's. It does not wait.
  virtual bool owns(ItemKind kind, std::string_view name) noexcept;
  // watch tells of a resource that the source owns that a client wants to hear when it changes. The source then calls
  // McpServer::resource_updated, as long as McpServer::wants is true. On an error the client's request is refused.
  // Errors: busy (the source watches as many as it can), no_memory.
  virtual std::expected<void, Error> watch(std::string_view uri) noexcept;
  // forward answers a call for what the source owns: call.name() and `params`, the request's, of tools/call,
  // resources/read or prompts/get. It ends by result_json or refuse; progress and notify_json are for on the way.
  // After `input_required` the client's answers are in `params`.
  virtual void forward(Call& call, ItemKind kind, JsonView params) noexcept;
  // complete answers completion/complete for a prompt (prompts) or a template (templates) that the source owns.
  virtual void complete(Call& call, ItemKind kind, JsonView params) noexcept;

 protected:
  constexpr Source() noexcept = default;
  ~Source() = default;
};

// Principal is who makes a request, as McpServerOptions::authorize finds out; empty: anybody.
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
using Authorize = Callable<Verdict(const http::Request& request, std::string_view token, Principal& who)>;

// Audit is one line of what has been done, valid while the hook runs.
struct Audit {
  std::string_view who;      // the principal; empty: anybody
  std::string_view method;   // "tools/call"
  std::string_view name;     // of the tool, prompt or resource; empty where there is none
  std::string_view outcome;  // "ok", "failed" (the tool says so), "asked" (for input), "refused", "cancelled", ...
  int code = 0;              // of the error that was answered
  std::chrono::milliseconds took{0};
};

// McpServerOptions is what a server offers and to whom. All that it refers to outlives the server.
struct McpServerOptions {
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
  void* context = nullptr;  // for Call::context: a tool has no captures, so that a table of tools is constant
  // Only the tools that are named here are offered, unless `every_tool`; McpServer::enable changes it.
  std::span<const std::string_view> enabled_tools = {};
  bool every_tool = true;

  // Origins of pages that may send requests beside the server's own, as browsers write them; "*" is any. By which names
  // the server may be called says http::ServerOptions::allow_hosts.
  std::span<const std::string_view> allow_origins = {};
  // With a token, requests must bring it, compared in constant time. With authorize, that judges instead, as by
  // coir/mcp/access.h.
  std::string_view token = {};
  Authorize authorize = {};
  Callable<void(const Audit& line)> audit = {};
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

  // The most sessions of the legacy era. A further session replaces the one that has been silent for longest.
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

// McpServerGauges is a snapshot of what a server holds.
struct McpServerGauges {
  std::size_t sessions;   // of the legacy era
  std::size_t listeners;  // streams that rest
  std::size_t calls;      // under way
};

// McpServer answers MCP (Model Context Protocol) over Streamable HTTP, both eras at one path: 2026-07-28, which keeps
// nothing between requests, and 2025-11-25, 2025-06-18 and 2025-03-26 with their sessions.
//
//   mcp::McpServer tools{{.name = "board", .tools = kTools}};
//   auto app = http::routes(http::any<"/mcp">(tools));
//
// A call runs on its request's fiber, whose stack is http::ServerOptions::handler_stack, of which the server takes 5
// KB beside what http/exchange.h says. Closing the connection cancels a call of 2026-07-28 and leaves one of the legacy
// era running, as their revisions say. Without waiting clients a server holds its tables alone; one of 2026-07-28
// leaves nothing behind.
//
// Used by one http::Server, and destroyed after that has stopped. Any fiber or thread may call the functions.
class McpServer {
 public:
  // The constructor ends the process, with one line, where create would return an error: what a program offers is
  // part of the program. server.cpp
  explicit McpServer(const McpServerOptions& options) noexcept;

  // create takes memory for the tables. For options that come from outside. Errors: no_memory, invalid (a tool without
  // a function, two of one name, a name that the protocol does not allow, a limit of 0), unsupported (a state_key, in a
  // build without TLS, which signs none).
  [[nodiscard]] static std::expected<McpServer, Error> create(const McpServerOptions& options) noexcept;

  McpServer(McpServer&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
  McpServer& operator=(McpServer&&) = delete;
  ~McpServer();

  // A call answers a request, whatever its method. From a handler, which returns afterwards.
  void operator()(http::Exchange& exchange) noexcept;
  // serve_metadata answers with the document of RFC 9728, at /.well-known/oauth-protected-resource and below; 404 where
  // there is none.
  void serve_metadata(http::Exchange& exchange) noexcept;

  // Clients that listen are told: that a list has changed, or a resource. wants returns whether any client wants to hear
  // of the resource. None of them waits.
  void list_changed(ItemKind kind) noexcept;
  void resource_updated(std::string_view uri) noexcept;
  bool wants(std::string_view uri) const noexcept;

  // enable switches a tool on or off, and tells who listens. False: there is none of that name.
  bool enable(std::string_view tool, bool on) noexcept;

  McpServerGauges gauges() const noexcept;

 private:
  explicit McpServer(ServerCore* core) noexcept : core_(core) {}

  ServerCore* core_;
};

}  // namespace coir::mcp
