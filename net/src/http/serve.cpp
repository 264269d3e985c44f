#include <coir/http/serve.h>

#include <coir/format.h>
#include <coir/ledger.h>
#include <coir/memory_watch.h>
#include <coir/net/log_line.h>
#include <coir/port/limits.h>
#include <coir/program.h>
#include <coir/signal.h>
#include <signal.h>

#include <algorithm>
#include <optional>

#if COIR_TLS
#include <coir/net/randomness.h>

#include "tls/certificate_file.h"
#endif

namespace coir::http::detail {

namespace {

// Listeners is the addresses that the options name, bound.
struct Listeners {
  TcpListener listeners[Server::kMaxListeners];
  bool secure[Server::kMaxListeners] = {};
  std::size_t count = 0;
};

template <class... Parts>
[[gnu::noinline]] void say(const ServeOptions& options, const Parts&... parts) noexcept {
  char line[400];
  log_line(format(line, options.name, ": ", parts..., "\n"));
}

// bind binds every address of a list, so that a failure is known before anything is served. Returns the exit status.
int bind(const ServeOptions& options, std::string_view list, bool secure, Listeners& into) noexcept {
  const char* const key = secure ? "tls_listen" : "listen";
  for (std::string_view rest = list; !rest.empty();) {
    const std::string_view one = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    const auto address = Address::parse(one);
    if (!address) return say(options, key, " '", one, "': ", address.error()), 2;
    if (into.count == Server::kMaxListeners)
      return say(options, key, " '", one, "': more than ", Server::kMaxListeners, " addresses"), 2;
    // A slow client must not fill the kernel's memory with what it will take some time.
    auto listener = TcpListener::listen(*address, {.backlog = port::limits().backlog, .unsent_bytes = 128 * 1024});
    if (!listener) return say(options, "cannot listen on ", one, ": ", describe(listener.error())), 1;
    into.listeners[into.count] = std::move(*listener);
    into.secure[into.count++] = secure;
  }
  return 0;
}

void tell_addresses(const ServeOptions& options, const Listeners& bound) noexcept {
  for (std::size_t i = 0; i < bound.count; ++i) {
    char text[Address::kMaxText];
    say(options, "listening on ", bound.listeners[i].local_address().format(text), bound.secure[i] ? " with TLS" : "");
  }
}

#if COIR_TLS
// has_randomness waits for the random numbers that a key needs. False: there are none, and a line has said so.
bool has_randomness(const ServeOptions& options) noexcept {
  if (randomness_ready()) return true;
  say(options, "waiting for the kernel's random numbers");
  if (await_randomness(Deadline::after(std::chrono::seconds(20)))) return true;
  say(options, "the kernel has no random numbers after 20 seconds");
  return false;
}
#endif

int serve_bound(const ServeOptions& options, Listeners& bound, TlsContextSlot* tls) noexcept {
  // It outlives the run: exchanges that are cut off end with that.
  auto server = Server::create(options.server, options.mode);
  if (!server) return say(options, "cannot serve: ", describe(server.error())), 1;
  tell_addresses(options, bound);
  for (std::size_t i = 0; i < bound.count; ++i) {
    if (auto added = server->add(std::move(bound.listeners[i]), bound.secure[i] ? tls : nullptr); !added)
      return say(options, "cannot serve: ", describe(added.error())), 2;
  }
  const auto body = [&] {
    if (auto started = server->start(); !started) return say(options, "cannot serve: ", describe(started.error())), 1;
#if !COIR_NO_ASYNC
    Nursery jobs;
    if (options.jobs) options.jobs(jobs);
#endif
    const std::size_t lost = server->serve_until({SIGTERM, SIGINT}, options.drain_timeout);
#if !COIR_NO_ASYNC
    jobs.cancel("the server stops");
    if (auto ended = jobs.join(); !ended) return say(options, "a job failed: ", describe(ended.error())), 1;
#endif
    return lost == 0 ? 0 : (say(options, lost, " connections cut off"), 1);
  };
#if COIR_NO_ASYNC
  return run_program(body);
#else
  // Without fibers for its handlers a server needs no more than one worker.
  return run({.workers = options.mode == Mode::fibers ? 0u : 1u}, body);
#endif
}

}  // namespace

int serve(const ServeOptions& given, const ServerOptions& server, std::string_view problem) noexcept {
  if (!problem.empty()) return say(given, problem), 2;
  ServeOptions options = given;
  options.server = server;
  if (options.mode != Mode::fibers) options.server.max_active = options.mode == Mode::serial ? 1 : options.threads;
  signal(SIGPIPE, SIG_IGN);
  // Before the lines that say it is ready, so that no signal after them is lost.
  if (auto caught = catch_signals({SIGTERM, SIGINT}); !caught)
    return say(options, "cannot catch signals: ", describe(caught.error())), 1;
  MemoryPlan plan;
  if (!plan_memory(options, plan))
    return say(options, "memory: ", plan.ceiling, " bytes are too few, ", plan.least, " serve one request"), 2;
  static_cast<void>(account::process.charge(plan.process));
  static_cast<void>(MemoryWatch::open(plan.ceiling, plan.kept_free));
  Listeners bound;
  if (const int status = bind(options, options.listen, false, bound); status != 0) return status;
  if (const int status = bind(options, options.tls_listen, true, bound); status != 0) return status;
  if (bound.count == 0) return say(options, "listen: no address"), 2;
  TlsContextSlot* slot = nullptr;
#if COIR_TLS
  std::optional<TlsContextSlot> tls;
  if (!options.tls_listen.empty()) {
    if (!has_randomness(options)) return 1;
    auto context = load_certificate_file(options.certificate);
    if (!context) return say(options, "certificate ", options.certificate, ": ", context.error()), 2;
    slot = &tls.emplace(std::move(*context));
  }
#else
  if (!options.tls_listen.empty()) return say(options, "tls_listen: this build has no TLS"), 2;
#endif
  const int status = serve_bound(options, bound, slot);
  MemoryWatch::close();
  account::process.refund(plan.process);
  return status;
}

}  // namespace coir::http::detail
