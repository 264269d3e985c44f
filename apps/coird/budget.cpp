#include "budget.h"

#include <coir/config.h>
#include <coir/ledger.h>
#if COIR_MDNS
#include <coir/net/mdns.h>
#endif
#include <coir/program.h>
#include <stdlib.h>

#include <algorithm>

#include "complaint.h"
#include "gateway.h"
#include "reporting.h"

#if COIR_TLS
#include <coir/tls.h>
#endif
#if COIRD_MCP
#include <coir/mcp.h>
#endif

namespace {

constexpr const char* kSeeBudget = "coird --print-budget tells what fits";

// held_by_parts is how many descriptors the parts of coird hold beside connections and their files.
std::size_t held_by_parts(const Options& options) noexcept {
  std::size_t held = options.mcp.tools.has("write_pin") ? Options::kMaxPins : options.pin_count;  // outputs
  if (options.control != nullptr) held += 5;
  if (options.mdns != nullptr) held += 4;  // a socket for each family, that of the interfaces, and its thread
  // A file, a socket or a device, and that which wakes its fiber, or a look at the name's address.
  for (const char* const part : {options.log_file, options.syslog, options.watchdog,
                                 static_cast<const char*>(getenv("NOTIFY_SOCKET")), options.mqtt})
    held += part != nullptr ? 2 : 0;
  for (const char* const file : {options.state, options.trace}) held += file != nullptr ? 1 : 0;
  return held;
}

}  // namespace

bool plan_budget(Options& options, coir::http::MemoryPlan& budget) noexcept {
  coir::http::ServerOptions& server = options.server;
  server.handler_stack = options.handler_stack();
  budget = coir::http::measure_memory(server, options.memory, options.any_tls(),
                                      options.reserve_given ? std::optional(options.reserve) : std::nullopt);
  if (budget.ceiling < budget.least) {
    const std::size_t least = budget.least - budget.process;
    if (options.memory <= budget.takeable) {
      return complain(kSeeBudget, {"--memory ", options.memory, ": the daemon itself takes ", budget.process,
                                   " bytes, and one request ", least});
    }
    return complain(kSeeBudget, {"the machine can spare ", budget.spare, " bytes and keeps ", budget.kept_free,
                                 " free: one request takes ", budget.least});
  }
  // If some come without TLS, the ledger alone tells how many there may be of each.
  const std::size_t connection = budget.connection + (options.only_tls() ? budget.session : 0);
  const std::size_t connections = budget.room() / connection;
  const std::size_t requests = budget.room() / (budget.request + budget.connection);
  if (options.connections_given && server.max_connections > connections) {
    return complain(kSeeBudget, {"--max-connections ", server.max_connections, ": each takes ", connection, " bytes, ",
                                 connections, " of them fit into ", budget.room()});
  }
  if (options.active_given && server.max_active > requests) {
    return complain(kSeeBudget,
                    {"--max-active ", server.max_active, ": each takes ", budget.request + budget.connection,
                     " bytes, ", requests, " of them fit into ", budget.room()});
  }
  if (!options.connections_given) server.max_connections = std::min(server.max_connections, connections);
  if (!options.active_given) server.max_active = std::min(server.max_active, requests);
#if COIR_TLS
  // Handshakes under way take an eighth in all, so that a flood of them leaves the established theirs. Those of others'
  // certificates may be far larger: they meet the same limit.
  coir::account::handshakes.set_ceiling(budget.room() / 8);
  if (options.any_tls()) {
    server.max_handshakes = std::max<std::size_t>(budget.room() / 8 / budget.handshake, 1);
  }
#endif
#if COIRD_MCP
  // A quarter: agents that ask for much leave the rest to other clients.
  if (options.mcp.path != nullptr) coir::account::mcp.set_ceiling(budget.room() / 4);
#endif
  for (std::size_t i = 0; i < options.account_count; ++i) {
    options.accounts[i].account->set_ceiling(options.accounts[i].bytes);
  }
  return true;
}

bool print_budget(const Options& options, const coir::http::MemoryPlan& budget) noexcept {
  const auto line = [](const char* name, std::size_t value, const char* unit) {
    if (value != SIZE_MAX) print({name, ": ", value, " ", unit});
  };
  line("ceiling", budget.ceiling, "bytes");
  line("spare", budget.spare, "bytes");
  line("kept_free", budget.kept_free, "bytes");
  line("process", budget.process, "bytes");
  if (coir::kFibers) line("fiber", budget.fiber, "bytes");
  line("connection", budget.connection, "bytes");
  line("connection_kernel", options.server.kernel_bytes_per_connection, "bytes");
  line("request", budget.request, "bytes");
  const bool tls = budget.session != 0;
  if (tls) line("tls_session", budget.session, "bytes");
  if (tls) line("handshake", budget.handshake, "bytes");
  if (coir::kFibers) line("fibers_that_fit", budget.room() / budget.fiber, "fibers");
  line("connections_that_fit", budget.room() / budget.connection, "connections");
  if (tls) line("tls_connections_that_fit", budget.room() / (budget.connection + budget.session), "connections");
  line("requests_that_fit", budget.room() / (budget.request + budget.connection), "requests");
  line("max_connections", options.server.max_connections, "connections");
  line("max_active", options.server.max_active, "requests");
  if (tls) line("max_handshakes", options.server.max_handshakes, "handshakes");
#if COIR_MDNS
  if (options.mdns != nullptr) line("mdns", coir::mdns::kServeBytes + budget.fiber, "bytes");
#endif
  // Up to four fibers: what reports, the client, its sender, and what takes commands.
  if (const std::size_t bytes = reporting_bytes(options)) line("mqtt", bytes + 7 * budget.fiber, "bytes");
#if COIRD_GATEWAY
  if (options.passes_on()) {
    const auto bytes = Gateway::planned_bytes(options);
    if (!bytes) return false;
    line("routes", *bytes, "bytes");
  }
#endif
#if COIRD_MCP
  if (options.mcp.path != nullptr) line("mcp", coir::account::mcp.ceiling(), "bytes");
  if (options.mcp.mounts.count != 0)  // three fibers of each and one, beside the lists that the account holds
    line("mcp_mounts", (options.mcp.mounts.count * 3 + 1) * budget.fiber, "bytes");
#endif
  for (std::size_t i = 0; i < options.account_count; ++i) {
    print({"ceiling_", options.accounts[i].account->name(), ": ", options.accounts[i].bytes, " bytes"});
  }
  return true;
}

void fit_descriptors(Options& options) noexcept {
  const std::size_t limit = coir::http::most_open_files();
  if (limit == SIZE_MAX) return;
  std::size_t files = 0;
  if (options.root != nullptr) {
    files = std::clamp<std::size_t>(limit / 4, 1, options.server.max_active);
    if (options.active_given && options.server.max_active > files) {
      warn({"--max-active ", options.server.max_active, ": the limit of open files allows ", files, " with --root"});
    }
    options.server.max_active = files;
  }
  // Standard streams, poller, wakeups, root, and what is open for a moment.
  std::size_t others = 15 + options.listen_count + files + held_by_parts(options);
  bool asks_others = options.passes_on();
  if (options.mcp.path != nullptr) {
    others += options.mcp.mounts.count * 3;  // what it tells by itself, or a program's two pipes
    asks_others = asks_others || options.mcp.mounts.count != 0 || options.mcp.introspect != nullptr;
  }
  // A request that is passed on, or for which another server is asked, takes a second descriptor; one for an application
  // a third, of the file of its content: chunks are kept whatever the option buffer says.
  const std::size_t each = options.application_count != 0 ? 3 : asks_others ? 2 : 1;
  const std::size_t most = limit > others + each ? (limit - others) / each : 1;
  if (options.server.max_connections <= most) return;
  if (options.connections_given) {
    warn({"--max-connections ", options.server.max_connections, ": the limit of open files allows ", most});
  }
  options.server.max_connections = most;
}
