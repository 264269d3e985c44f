#include <coir/http/run.h>
#include <signal.h>

using namespace coir;

extern "C" void use_thread_pool(const http::ServerOptions& options, TcpListener& listener) {
  static_cast<void>(http::run_pool(4, options, std::move(listener), {SIGTERM}));
  static_cast<void>(http::run(options, std::move(listener), {SIGTERM}));
}
