#pragma once

// Other MCP servers, offered as one.
//
//   const mcp::Mount mounts[] = {{.prefix = "kitchen", .upstream = {.url = "http://10.0.0.2/mcp"}}};
//   auto gateway = mcp::Gateway::create(mounts);
//   if (!gateway) return complain(gateway.error());
//   mcp::Source* const sources[] = {&gateway->source()};
//   mcp::McpServer tools{{.name = "house", .sources = sources}};
//   Nursery nursery;
//   nursery.start([&] { return gateway->run(); });

#include <coir/mcp.h>
#include <coir/mcp/client.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string_view>
#include <utility>

namespace coir::mcp {

namespace detail {
struct GatewayState;
}  // namespace detail

// Mount is another server whose tools, resources and prompts are offered as ours. All that is pointed to outlives the
// gateway.
//
// A tool and a prompt NAME is offered as PREFIX_NAME, or as NAME where the prefix is empty. A resource keeps its URI,
// which results of its server's tools may name; where a mount before it has the same URI, it is offered as PREFIX+URI.
// If two items have the same name, the first mount's counts.
struct Mount {
  std::string_view prefix;                     // letters, digits, '_' and '-', at most 32; no two mounts have the same
  McpClientOptions upstream;                   // by url or command
  std::chrono::milliseconds deadline{30'000};  // of a call, waiting for its turn included
  std::uint32_t limit = 16;                    // calls at a time; more wait for their turn
  // After so many calls in a row that brought no answer of any kind the upstream is left alone for `rest`, and calls fail
  // at once; then one call tries.
  std::uint32_t failures = 5;
  std::chrono::milliseconds rest{10'000};
  std::size_t max_list = 256 * 1024;  // of each list that is kept, as JSON
};

struct GatewayOptions {
  // The pause before an upstream that did not answer is asked for its lists again; it doubles up to the longest.
  std::chrono::milliseconds pause{1'000};
  std::chrono::milliseconds longest_pause{60'000};
  // How long lists are kept of a server that does not say (ttlMs): one that tells of changes, and one that does not.
  std::chrono::milliseconds fresh_if_told{300'000};
  std::chrono::milliseconds fresh{10'000};
  // changed is called when a list may have changed: McpServer::list_changed wants to know. It must not wait.
  Callable<void(ItemKind kind)> changed = {};
  // updated is called when a resource that clients listen for has changed: McpServer::resource_updated wants to know.
  // wanted is McpServer::wants; without it a resource is wanted for ever. It is called under a spinlock. They must not
  // wait.
  Callable<void(std::string_view uri)> updated = {};
  Callable<bool(std::string_view uri)> wanted = {};
};

// MountGauges is a snapshot of one mount.
struct MountGauges {
  std::string_view prefix;
  bool up = false;          // its lists were had or refused, and the latest call or list was answered
  bool is_resting = false;  // it is left alone
  std::uint32_t calls = 0;  // under way
  std::uint64_t answered = 0, failed = 0;
};

// Gateway is a source (coir/mcp.h) of what mounted servers have.
//
// A mount that is down leaves the others alone: it is asked again and again, and what was listed of it before is offered
// until then. Lists are kept for as long as their server says, and asked for anew after a change was told. Errors of
// upstreams are passed on as they say them; where there is no answer the client is told by the prefix whose, never by an
// address. Requests of modern upstreams to the client are passed on; legacy ones get the error that the client cannot be asked.
//
// Single resources that clients listen for are subscribed to at their upstreams, at most 32 of each, whose URIs have at
// most 4,096 bytes. One more is refused: kBusy. If the upstream refuses one of them, that one is left out, and the others stay.
//
// Memory: account::mcp, for the lists and each call; three fibers for each mount.
class Gateway {
 public:
  // create makes ready and connects to nothing. Errors: invalid (a prefix, an upstream's options, no mounts), limit (over
  // 64 mounts), no_memory.
  [[nodiscard]] static std::expected<Gateway, Error> create(std::span<const Mount> mounts,
                                                            const GatewayOptions& options = {}) noexcept;

  Gateway(Gateway&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  Gateway& operator=(Gateway&& other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  // No call may be in progress.
  ~Gateway();

  // source stays where it is when the gateway is moved.
  Source& source() noexcept;

  // run keeps the programs, the lists and the listeners going, until close or cancellation. One fiber, once. Errors:
  // cancelled, timed_out (a scope around it); limit and no_memory (no fiber for a mount); unsupported.
  [[nodiscard]] std::expected<void, Error> run() noexcept;
  // close ends run. Idempotent; any fiber or thread.
  void close() noexcept;

  // mounts is how many there are; gauges describes one of them.
  std::size_t mounts() const noexcept;
  MountGauges gauges(std::size_t mount) const noexcept;

 private:
  explicit Gateway(detail::GatewayState* state) noexcept : state_(state) {}

  detail::GatewayState* state_;
};

}  // namespace coir::mcp
