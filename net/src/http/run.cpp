#include <coir/http/run.h>
#include <coir/program.h>

#include "http/session/sound_options.h"
#if !COIR_NO_ASYNC
#include "http/threads/thread_engine.h"
#endif

namespace coir::http {

#if COIR_NO_ASYNC
// Without fibers a Server is one blocking loop, and between two requests a connection rests.
std::expected<std::size_t, Error> run(const ServerOptions& options, TcpListener&& listener,
                                      std::initializer_list<int> signals, std::chrono::milliseconds drain_timeout,
                                      TlsContextSlot* tls) noexcept {
  auto server = Server::create(options);
  if (!server) return std::unexpected(server.error());
  if (auto added = server->add(std::move(listener), tls); !added) return std::unexpected(added.error());
  return server->serve_until(signals, drain_timeout);
}
#else
std::expected<std::size_t, Error> run(const ServerOptions& options, TcpListener&& listener,
                                      std::initializer_list<int> signals, std::chrono::milliseconds,
                                      TlsContextSlot* tls) noexcept {
  const auto sound = sound_options(options);
  if (!sound) return std::unexpected(sound.error());
  ThreadEngine* const engine = ThreadEngine::create(*sound, 1, std::move(listener), tls);
  if (engine == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  const auto served = engine->serve_here(signals);
  ThreadEngine::destroy(engine);
  if (!served) return std::unexpected(served.error());
  return 0;
}
#endif

#if COIR_SINGLE_WORKER
std::expected<std::size_t, Error> run_pool(std::size_t, const ServerOptions&, TcpListener&&, std::initializer_list<int>,
                                           std::chrono::milliseconds, TlsContextSlot*) noexcept {
  return std::unexpected(Error{ErrorCode::unsupported});
}
#else
std::expected<std::size_t, Error> run_pool(std::size_t threads, const ServerOptions& options, TcpListener&& listener,
                                           std::initializer_list<int> signals, std::chrono::milliseconds drain_timeout,
                                           TlsContextSlot* tls) noexcept {
  constexpr std::size_t kMostThreads = 4096;
  const auto sound = sound_options(options);
  if (!sound) return std::unexpected(sound.error());
  if (threads == 0 || threads > kMostThreads) return std::unexpected(Error{ErrorCode::invalid});
  ThreadEngine* const engine = ThreadEngine::create(*sound, threads, std::move(listener), tls);
  if (engine == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  const auto lost = engine->serve_on_threads(signals, drain_timeout);
  ThreadEngine::destroy(engine);
  return lost;
}
#endif

}  // namespace coir::http
