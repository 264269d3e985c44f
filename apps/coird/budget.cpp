#include "budget.h"

#include <coir/config.h>
#include <coir/ledger.h>
#include <coir/memory_watch.h>
#include <sys/resource.h>
#if COIR_MDNS
#include <coir/net/mdns.h>
#endif
#include <coir/port/limits.h>
#include <coir/program.h>

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

constexpr std::size_t kFibersOfTheDaemon = coir::kFibers ? 3 : 0;  // main, which waits for signals; accepting; reaping

// The program's share where the kernel does not tell.
constexpr std::size_t kGuessedProcess = 256 * 1024;

constexpr const char* kSeeBudget = "coird --print-budget tells what fits";

}  // namespace

bool plan_budget(Options& options, Budget& budget) noexcept {
  coir::http::ServerOptions& server = options.server;
  const std::size_t resident = coir::MemoryWatch::resident();
  budget.process = resident != 0 ? resident : kGuessedProcess;
  budget.spare = coir::MemoryWatch::spare();
  const std::size_t kept = coir::port::limits().keep_free_bytes;
  constexpr std::size_t kMega = 1024 * 1024;
  budget.reserve = options.reserve_given      ? options.reserve
                   : kept != 0                ? kept
                   : budget.spare == SIZE_MAX ? 0
                                              : std::clamp(budget.spare / 16, kMega, 64 * kMega);
  const std::size_t takeable = budget.spare == SIZE_MAX        ? SIZE_MAX
                               : budget.spare > budget.reserve ? budget.spare - budget.reserve + budget.process
                                                               : 0;
  budget.ceiling = std::min(options.memory, takeable);
  budget.connection = coir::http::Server::connection_bytes(server);
  budget.fiber = coir::kFibers ? options.handler_stack() : 0;
  budget.request = coir::http::Server::request_bytes() + budget.fiber;

#if COIR_TLS
  if (options.any_tls()) {
    budget.session = coir::kTlsIdleBytes;
    budget.handshake = budget.request + coir::kTlsHandshakeBytes;
  }
#endif

  const std::size_t least =
      kFibersOfTheDaemon * 16 * 1024 + budget.connection + std::max(budget.request, budget.handshake);
  if (budget.room() < least) {
    if (options.memory <= takeable) {
      return complain(kSeeBudget, {"--memory ", options.memory, ": the daemon itself takes ", budget.process,
                                   " bytes, and one request ", least});
    }
    return complain(kSeeBudget, {"the machine can spare ", budget.spare, " bytes and keeps ", budget.reserve,
                                 " free: one request takes ", budget.process + least});
  }
  // Where some come without TLS, the ledger alone tells how many there may be of each.
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

bool print_budget(const Options& options, const Budget& budget) noexcept {
  const auto line = [](const char* name, std::size_t value, const char* unit) {
    if (value != SIZE_MAX) print({name, ": ", value, " ", unit});
  };
  line("ceiling", budget.ceiling, "bytes");
  line("spare", budget.spare, "bytes");
  line("kept_free", budget.reserve, "bytes");
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
  if (options.mcp.mounts.count != 0)  // three fibers of each, beside the lists that the account holds
    line("mcp_mounts", options.mcp.mounts.count * 3 * budget.fiber, "bytes");
#endif
  for (std::size_t i = 0; i < options.account_count; ++i) {
    print({"ceiling_", options.accounts[i].account->name(), ": ", options.accounts[i].bytes, " bytes"});
  }
  return true;
}

void fit_descriptors(Options& options) noexcept {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  getrlimit(RLIMIT_NOFILE, &limit);
  std::size_t files = 0;
  if (options.root != nullptr) {
    files = std::clamp<std::size_t>(static_cast<std::size_t>(limit.rlim_cur) / 4, 1, options.server.max_active);
    if (options.active_given && options.server.max_active > files) {
      say({"--max-active ", options.server.max_active, ": the limit of open files allows ", files, " with --root"});
    }
    options.server.max_active = files;
  }
  // Standard streams, poller, wakeups, root, and what is open for a moment.
  const std::size_t others = 15 + options.listen_count + files;
  // A request that is passed on takes a second descriptor.
  const std::size_t each = options.passes_on() ? 2 : 1;
  const std::size_t most =
      limit.rlim_cur > others + each ? (static_cast<std::size_t>(limit.rlim_cur) - others) / each : 1;
  if (options.server.max_connections <= most) return;
  if (options.connections_given) {
    say({"--max-connections ", options.server.max_connections, ": the limit of open files allows ", most});
  }
  options.server.max_connections = most;
}
