#include <coir/http/serve.h>
#include <coir/memory_watch.h>
#include <coir/port/limits.h>
#include <sys/resource.h>

#include <algorithm>

#if COIR_TLS
#include <coir/tls.h>
#endif

namespace coir::http {

namespace {

constexpr std::size_t kMega = 1024 * 1024;
constexpr std::size_t kLeastProcess = 256 * 1024;  // also where the kernel does not tell
constexpr std::size_t kFibersOfTheServer = kFibers ? 3 * 16 * 1024 : 0;

// most_files raises the limit of open files, and is how many connections it allows.
std::size_t most_files() noexcept {
  constexpr std::size_t kOthers = 32;
  rlimit files = {};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return SIZE_MAX;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  return files.rlim_cur > 2 * kOthers ? static_cast<std::size_t>(files.rlim_cur) - kOthers : kOthers;
}

}  // namespace

std::expected<void, Error> plan_memory(ServeOptions& options, MemoryPlan& plan) noexcept {
  const port::Limits limits = port::limits();
  ServerOptions& server = options.server;
  const std::size_t spare = MemoryWatch::spare();
  plan.process = std::max(MemoryWatch::resident(), kLeastProcess);
  plan.kept_free = limits.keep_free_bytes != 0 ? limits.keep_free_bytes
                   : spare == SIZE_MAX         ? 0
                                               : std::clamp(spare / 16, kMega, 64 * kMega);
  const std::size_t takeable = spare == SIZE_MAX        ? SIZE_MAX
                               : spare > plan.kept_free ? spare - plan.kept_free + plan.process
                                                        : 0;
  plan.ceiling = std::min(options.memory, takeable);
  server.kernel_bytes_per_connection = limits.kernel_bytes_per_connection;
  std::size_t session = 0, handshake = 0;
#if COIR_TLS
  if (!options.tls_listen.empty()) {
    session = kTlsIdleBytes;
    handshake = kTlsHandshakeBytes;
  }
#endif
  plan.connection = Server::connection_bytes(server) + session;
  plan.request = Server::request_bytes() + (kFibers ? server.handler_stack : 0);
  plan.least = plan.process + kFibersOfTheServer + plan.connection + plan.request + handshake;
  if (plan.ceiling < plan.least) return std::unexpected(Error{ErrorCode::limit});
  const std::size_t room = plan.ceiling - plan.process;
  server.max_connections = std::min(
      {std::max(server.max_connections, std::size_t{limits.connections}), room / plan.connection, most_files()});
  server.max_active = std::min(server.max_active, std::max<std::size_t>(room / (2 * plan.request), 1));
  if (handshake != 0)
    server.max_handshakes = std::max<std::size_t>(std::min(server.max_handshakes, room / 8 / handshake), 1);
  return {};
}

}  // namespace coir::http
