#include <coir/http/run_async.h>
#include <coir/runtime.h>
#include <coir/signal.h>

namespace coir::http {

std::expected<std::size_t, Error> run_async(const ServerOptions& options, TcpListener&& listener,
                                            std::initializer_list<int> signals, std::chrono::milliseconds drain_timeout,
                                            TlsContextSlot* tls, const RunOptions& runtime) noexcept {
  if (auto caught = catch_signals(signals); !caught) return std::unexpected(caught.error());
  // The server outlives the run, for exchanges that are cut off end with it.
  auto server = Server::create(options);
  if (!server) return std::unexpected(server.error());
  if (auto added = server->add(std::move(listener), tls); !added) return std::unexpected(added.error());
  std::size_t lost = 0;
  const auto ran = run_until_idle(runtime, [&]() -> std::expected<void, Error> {
    if (auto started = server->start(); !started) return started;
    lost = server->serve_until(signals, drain_timeout);
    return {};
  });
  if (!ran) return std::unexpected(ran.error());
  return lost;
}

}  // namespace coir::http
