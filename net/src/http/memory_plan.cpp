#include <coir/http/serve.h>
#include <coir/memory_watch.h>
#include <coir/net/stream.h>
#include <coir/port/limits.h>
#include <sys/resource.h>

#include <algorithm>

#if COIR_TLS
#include <coir/tls.h>
#endif

namespace coir::http {

MemoryPlan measure_memory(const ServerOptions& server, std::size_t memory, bool tls,
                          std::optional<std::size_t> keep_free) noexcept {
  constexpr std::size_t kMega = 1024 * 1024;
  constexpr std::size_t kGuessedProcess = 256 * 1024;  // if the kernel does not tell
  // Main, which waits for signals; accepting; reaping.
  constexpr std::size_t kFibersOfTheServer = kFibers ? 3 * 16 * 1024 : 0;
  const std::size_t boards = port::limits().keep_free_bytes, resident = MemoryWatch::resident();
  MemoryPlan plan = {.process = resident != 0 ? resident : kGuessedProcess, .spare = MemoryWatch::spare()};
  const bool tells = plan.spare != SIZE_MAX;
  plan.kept_free = keep_free     ? *keep_free
                   : boards != 0 ? boards
                   : !tells      ? 0
                                 : std::clamp(plan.spare / 16, kMega, 64 * kMega);
  plan.takeable = !tells ? SIZE_MAX : plan.spare > plan.kept_free ? plan.spare - plan.kept_free + plan.process : 0;
  plan.ceiling = std::min(memory, plan.takeable);
  plan.connection = Server::connection_bytes(server);
  plan.fiber = kFibers ? server.handler_stack : 0;
  plan.request = Server::request_bytes() + plan.fiber;
#if COIR_TLS
  if (tls) {
    plan.session = kTlsIdleBytes;
    plan.handshake = plan.request + kTlsHandshakeBytes;
  }
#else
  static_cast<void>(tls);
#endif
  plan.least = plan.process + kFibersOfTheServer + plan.connection + std::max(plan.request, plan.handshake);
  return plan;
}

std::expected<void, Error> plan_memory(ServeOptions& options, MemoryPlan& plan) noexcept {
  constexpr std::size_t kOtherFiles = 32;
  const port::Limits limits = port::limits();
  ServerOptions& server = options.server;
  server.kernel_bytes_per_connection = limits.kernel_bytes_per_connection;
  plan = measure_memory(server, options.memory, kTls && !options.tls_listen.empty());
  if (plan.ceiling < plan.least) return std::unexpected(Error{ErrorCode::limit});
  const std::size_t files = most_open_files();
  server.max_connections = std::min({std::max(server.max_connections, std::size_t{limits.connections}),
                                     plan.room() / (plan.connection + plan.session),
                                     files > 2 * kOtherFiles ? files - kOtherFiles : kOtherFiles});
  server.max_active = std::min(server.max_active, std::max<std::size_t>(plan.room() / (2 * plan.request), 1));
  if (plan.handshake != 0)
    server.max_handshakes = std::max<std::size_t>(std::min(server.max_handshakes, plan.room() / 8 / plan.handshake), 1);
  return {};
}

std::size_t most_open_files() noexcept {
  rlimit files = {};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return SIZE_MAX;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  getrlimit(RLIMIT_NOFILE, &files);
  return static_cast<std::size_t>(files.rlim_cur);
}

}  // namespace coir::http
