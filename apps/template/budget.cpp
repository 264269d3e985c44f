#include "budget.h"

#include <coir/memory_watch.h>
#include <coir/net/tls.h>
#include <coir/port/limits.h>
#include <stdio.h>
#include <sys/resource.h>

#include <algorithm>

using coir::http::Server;

bool plan_budget(const Options& options, coir::http::ServerOptions& server, Budget& budget) noexcept {
  const coir::port::Limits limits = coir::port::limits();
  const std::size_t spare = coir::MemoryWatch::spare();
  budget.process = std::max<std::size_t>(coir::MemoryWatch::resident(), 256 * 1024);
  budget.kept_free = limits.keep_free_bytes != 0 ? limits.keep_free_bytes : std::min<std::size_t>(spare / 16, 64 << 20);
  const std::size_t takeable = spare > budget.kept_free ? spare - budget.kept_free + budget.process : 0;
  budget.ceiling = std::min(options.memory, takeable);
  server.kernel_bytes_per_connection = limits.kernel_bytes_per_connection;
  budget.connection = Server::connection_bytes(server) + (options.tls_listen ? coir::kTlsIdleBytes : 0);

  // A request, its fiber, and where there is TLS a handshake; beside them the fibers and the feed of the program itself.
  const std::size_t request = Server::request_bytes() + server.handler_stack;
  const std::size_t least = budget.process + 256 * 1024 + request + (options.tls_listen ? coir::kTlsHandshakeBytes : 0);
  if (budget.ceiling < least) {
    fprintf(stderr, "station: %zu bytes are too few, %zu are needed (--print-budget and --memory tell)\n",
            budget.ceiling, least);
    return false;
  }
  const std::size_t room = budget.ceiling - budget.process;
  // Each connection is an open file.
  rlimit files = {};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  const std::size_t most_files = files.rlim_cur > 64 ? static_cast<std::size_t>(files.rlim_cur) - 32 : 32;
  server.max_connections = std::min({std::size_t{limits.connections}, room / budget.connection, most_files});
  server.max_active = std::min<std::size_t>(server.max_active, std::max<std::size_t>(room / (2 * request), 1));
  server.max_handshakes = std::max<std::size_t>(room / 8 / coir::kTlsHandshakeBytes, 1);
  return true;
}

void print_budget(const Budget& budget, const coir::http::ServerOptions& server) noexcept {
  printf("ceiling: %zu bytes\nkept_free: %zu bytes\nprocess: %zu bytes\nconnection: %zu bytes\n", budget.ceiling,
         budget.kept_free, budget.process, budget.connection);
  printf("max_connections: %zu connections\nmax_active: %zu requests\nmax_handshakes: %zu handshakes\n",
         server.max_connections, server.max_active, server.max_handshakes);
}
