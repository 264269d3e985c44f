#include <coir/config.h>
#include <coir/ledger.h>
#include <coir/memory_watch.h>
#include <coir/net/log_line.h>
#include <coir/net/tls.h>
#include <coir/nursery.h>
#include <coir/port/limits.h>
#include <coir/runtime.h>
#include <coir/signal.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "budget.h"
#include "certificate.h"
#include "monitor.h"
#include "options.h"
#include "routes.h"

using namespace std::chrono_literals;
using coir::http::Server;

namespace {

// failed says in one line why the program cannot run, and returns its exit status.
int failed(const char* what, const char* which, const char* why) noexcept {
  fprintf(stderr, "station: cannot %s %s: %s\n", what, which, why);
  return 1;
}

// listen binds one address before anything is served, so that a failure is known at the start.
bool listen(Server& server, const coir::Address& address, coir::TlsContextSlot* tls) noexcept {
  char text[coir::Address::kMaxText];
  auto listener =
      coir::TcpListener::listen(address, {.backlog = coir::port::limits().backlog, .unsent_bytes = 128 * 1024});
  if (!listener) {
    fprintf(stderr, "station: cannot listen on %.*s: %s\n", static_cast<int>(address.format(text).size()), text,
            describe(listener.error()));
    return false;
  }
  const auto bound = listener->local_address().format(text);
  fprintf(stderr, "station: listening on %.*s%s\n", static_cast<int>(bound.size()), bound.data(),
          tls != nullptr ? " with TLS" : "");
  return server.add(std::move(*listener), tls).has_value();
}

// run serves until SIGTERM or SIGINT, then lets requests end for ten seconds.
std::expected<void, coir::Error> run(Server& server, Monitor& monitor, std::chrono::milliseconds interval) noexcept {
  if (auto started = server.start(); !started) return started;
  coir::Nursery jobs;
  auto publisher = jobs.spawn({.name = "publish"}, [&] { return monitor.publish(); });
  auto sensor = jobs.spawn({.name = "measure"}, [&] { return monitor.measure(interval); });
  static_cast<void>(server.serve_until({SIGTERM, SIGINT}, 10s));
  for (auto* job : {&sensor, &publisher}) {
    static_cast<void>(job->cancel());
    static_cast<void>(job->await());  // cancelled, as it was asked to be
  }
  return {};
}

int serve(const Options& options) noexcept {
  signal(SIGPIPE, SIG_IGN);
  // Before the line that says the program is ready, so that no signal after it is lost.
  if (auto caught = coir::catch_signals({SIGTERM, SIGINT}); !caught)
    return failed("catch", "signals", describe(caught.error()));

  // The feed and what answers from it outlive the run: what is cut off at the end still uses them.
  auto feed = coir::http::Feed::create({.history_events = 256});
  if (!feed) return failed("reserve memory for", "the feed", describe(feed.error()));
  static std::optional<Monitor> monitor;
  monitor.emplace(std::move(*feed), options.sensor);

  static auto app = routes_of(*monitor);
  auto server_options = coir::http::answered_by(app);
  Budget budget;
  if (!plan_budget(options, server_options, budget)) return 2;
  static_cast<void>(coir::account::process.charge(budget.process));
  static_cast<void>(coir::MemoryWatch::open(budget.ceiling, budget.kept_free));

  static std::optional<coir::TlsContextSlot> tls;
  if (options.tls_listen) {
    auto context = load_certificate(options.certificate);
    if (!context) return failed("use the certificate", options.certificate, coir::describe_tls(context.error()));
    tls.emplace(std::move(*context));
  }
  auto created = Server::create(server_options);
  if (!created) return failed("reserve memory for", "the connections", describe(created.error()));
  static std::optional<Server> server;
  server.emplace(std::move(*created));
  monitor->server = &*server;
  if (options.listen && !listen(*server, *options.listen, nullptr)) return 1;
  if (options.tls_listen && !listen(*server, *options.tls_listen, &*tls)) return 1;
  return coir::run([&] { return run(*server, *monitor, options.every); });
}

int print_plan(const Options& options) noexcept {
  coir::http::ServerOptions server;
  Budget budget;
  if (!plan_budget(options, server, budget)) return 2;
  print_budget(budget, server);
  return 0;
}

}  // namespace

int main(int count, char** words) {
  Options options;
  if (!parse_options(count, words, options)) return 2;
  switch (options.action) {
    case Options::Action::help:
      return print_help(), 0;
    case Options::Action::version:
      return puts("station on coir " COIR_VERSION), 0;
    case Options::Action::print_budget:
      return print_plan(options);
    case Options::Action::serve:
      return serve(options);
  }
}
