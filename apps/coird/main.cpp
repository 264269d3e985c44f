#include <coir/config.h>
#include <coir/http/files.h>
#include <coir/http/server.h>
#include <coir/ledger.h>
#include <coir/memory_watch.h>
#include <coir/port/limits.h>
#include <coir/program.h>
#include <coir/signal.h>
#include <signal.h>
#include <unistd.h>

#include <span>
#include <utility>

#include "../coirctl/coirctl.h"
#include "announcing.h"
#include "auth.h"
#include "budget.h"
#include "complaint.h"
#include "control/control.h"
#include "daemon.h"
#include "identity.h"
#include "last_end.h"
#include "life/feeder.h"
#include "life/notify.h"
#include "life/safe_mode.h"
#include "log/log_feed.h"
#include "options/options.h"
#include "reporting.h"
#include "sandbox.h"
#include "state.h"
#include "trace_file.h"

namespace {

using namespace std::chrono_literals;
using coir::http::FileTree;
using coir::http::FileTreeOptions;
using coir::http::Server;

// hold_hangup has a SIGHUP wait, until it is caught: without a handler it would end coird, and one that came while coird
// waits to start would be lost.
void hold_hangup(int how) noexcept {
  sigset_t hangup;
  sigemptyset(&hangup);
  sigaddset(&hangup, SIGHUP);
  sigprocmask(how, &hangup, nullptr);
}

// failed writes the one line that says why coird cannot run.
int failed(const char* what, const char* which, coir::Error error) noexcept {
  static constinit coir::LogSource starts("start");
  say(starts, coir::LogLevel::error, {what, " ", which, ": ", describe(error)});
  return 1;
}

// unusable complains of a file or a folder that an option names; the exit status is that of a wrong option.
int unusable(const Options& options, const char* option, const char* name, coir::Error error,
             const char* cure) noexcept {
  options.wrong(option, name, cure, {error});
  return 2;
}

[[gnu::noinline]] int serve(Options& options, SafeMode& safe, int count, char** arguments) noexcept {
  // Before the line that says it is ready, so that no signal after it is lost.
  if (auto caught = coir::catch_signals({SIGTERM, SIGINT, SIGHUP}); !caught)
    return failed("cannot catch", "signals", caught.error());
  hold_hangup(SIG_UNBLOCK);
  coir::show_fibers_on(SIGQUIT);
  coir::set_log_level(options.log_level);
  coir::http::MemoryPlan budget;
  if (!plan_budget(options, budget)) return 2;
  fit_descriptors(options);
  static_cast<void>(coir::account::process.charge(budget.process));
  // A reserve that the kernel does not tell is left out: then the ceiling alone holds.
  static_cast<void>(coir::MemoryWatch::open(budget.ceiling, budget.kept_free));
  Control control;  // ends after the record
  LogFeed log_feed;
  if (options.log_file != nullptr || options.syslog != nullptr) coir::keep_log_lines(true);
  RunRecord record;
  if (!options.check) record.begin(options);
  // Before any secret is read: who reads it later counts.
  Identity identity;
  if (!find_identity(options, identity)) return 2;
  secrets_are_for(identity.user, identity.group);
  // Outlives the run: what is cut off still answers from it while it ends.
  Daemon daemon;
  if (options.root != nullptr) {
    FileTree& files = daemon.files.emplace(
        options.root, FileTreeOptions{.dot_files = options.dot_files,
                                      .index = options.index,
                                      .cache = std::span(options.cache_rules).first(options.cache_rule_count),
                                      .error_pages = std::span(options.error_pages).first(options.error_page_count),
                                      .writable = options.writable});
    if (auto opened = files.opened(); !opened) {
      // The folder that PUT changes is below the root: without a root there is none.
      if (options.writable != nullptr && FileTree(options.root).opened())
        return unusable(options, "allow-put", options.writable, opened.error(),
                        "make the folder below --root, or name another");
      return unusable(options, "root", options.root, opened.error(),
                      "make the folder, or name one that coird can read");
    }
    for (const auto& page : std::span(options.error_pages).first(options.error_page_count)) {
      if (auto there = files.has(page.path); !there)
        return unusable(options, "error-page", page.path, there.error(), "make the file below --root, or name another");
    }
  }
  daemon.options = &options;
#if COIR_TLS
  if (const int status = daemon.tls.prepare(options); status != 0) return status;
#endif
#if COIR_TLS && COIR_SITE
  if (options.credentials != nullptr) {
    auto store = coir::http::CredentialStore::create(options.server.max_active / 2);
    if (!store) return failed("cannot reserve memory for", "the credentials", store.error());
    if (!read_auth({options.credentials, &options, "auth"}, *store, "coird --help explains --auth")) return 2;
    store->apply();
    daemon.credentials.emplace(std::move(*store));
  }
#endif
#if COIRD_GATEWAY
  if (options.passes_on() && !daemon.gateway.emplace().open(options)) return 2;
#endif
#if COIRD_SCRIPTS
  if (options.application_count != 0 &&
      !daemon.scripts.emplace().open(options, daemon.files ? &*daemon.files : nullptr))
    return 2;
#endif
  if (!daemon.board.open(options)) return 2;
#if COIRD_MCP
  if (options.mcp.path != nullptr && !daemon.mcp.emplace().open(options.mcp, daemon)) return 2;
#endif
#if COIR_DASHBOARD
  if (options.dashboard != nullptr && !daemon.dashboard.emplace().open(options, daemon)) return 2;
#endif
  Reporting reporting;
  if (!reporting.prepare(options)) return 2;
  if (options.check) {
    print({"the options are valid"});
    return printed();
  }
  daemon.arguments = {arguments, static_cast<std::size_t>(count)};
  daemon.safe = safe.on() ? &safe : nullptr;
  open_notify();
  Feeder feeder;
  feeder.take(options);
  options.server.on_hangup = [&daemon] { reload(daemon); };
  // No new client should find the daemon while the last requests end.
  options.server.on_stop = [&daemon, &feeder] {
    daemon.drains.store(true);
    notify_stopping();
    feeder.end_groups();
    if (daemon.announcing != nullptr) daemon.announcing->leave();
  };
  options.server.heartbeat = feeder.server_heartbeat();
  options.server.handler = [&daemon](coir::http::Exchange& exchange) { answer(daemon, exchange); };
  add_metrics(daemon);
  auto server = Server::create(options.server);
  if (!server) return failed("cannot reserve memory for", "the connections", server.error());
  daemon.server.emplace(std::move(*server));
  // Before coird gives up the right to bind them.
  OpenedListeners opened;
  if (!daemon.listeners.open(options, opened)) return 1;
  if ((!control.open(options, identity) && !options.safe) || !log_feed.open(options, identity)) return 2;
  int trace = -1;
  if (!open_trace(options, trace)) return 2;
  feeder.open();
  make_room_for_files(options, identity);
  keep_writes(options);
  if (!become(options, identity)) return 1;
  keep_calls(options);

  coir::Error start_error{};
  std::size_t cut_off = 0;
  const int status = coir::run_program([&] {
    if (auto started = daemon.server->start(); !started) {
      start_error = started.error();
      return 1;
    }
    if (!daemon.listeners.serve(options, opened, *daemon.server, daemon.tls_slot())) return 1;
    daemon.listeners.settle(options, opened, *daemon.server);
    complain_without_waiting();
#if COIR_TLS
    daemon.tls.start(options);
#endif
    const Announcing announcing(options, daemon.listeners.ports());
    daemon.announcing = &announcing;
    watch_upstreams(daemon);
#if COIRD_MCP
    if (daemon.mcp) daemon.mcp->start();
#endif
#if COIR_DASHBOARD
    if (daemon.dashboard) daemon.dashboard->start();
#endif
    reporting.start(daemon);
    log_feed.start();
    control.start(daemon);
    feeder.start();
    notify_ready();
    safe.serving();
    cut_off = daemon.server->serve_until({SIGTERM, SIGINT, SIGHUP}, options.drain_timeout);
    end_reloads();
    control.stop();  // before the parts that it asks go
    record.stopped();
    safe.stopped();
    daemon.announcing = nullptr;
#if COIRD_GATEWAY
    // Connections to upstreams wait for what their upstreams say: they are part of the run, and would hold it up.
    daemon.gateway.reset();
#endif
#if COIRD_SCRIPTS
    daemon.scripts.reset();
#endif
#if COIRD_MCP
    if (daemon.mcp) daemon.mcp->stop();
    daemon.mcp.reset();
#endif
#if COIR_DASHBOARD
    if (daemon.dashboard) daemon.dashboard->stop();
#endif
    reporting.stop();
    log_feed.stop();
#if COIR_TLS
    daemon.tls.stop();
#endif
    if (trace >= 0) static_cast<void>(coir::write_trace(trace));
    return cut_off == 0 ? 0 : 1;
  });
  feeder.stop();
  if (start_error.code != coir::ErrorCode{}) return failed("cannot start", "the server", start_error);
  coir::MemoryWatch::close();
#if COIR_TLS
  if (options.any_tls()) keep_state(options.state);
#endif
  if (cut_off != 0) warn({cut_off, " connections cut off"});
  return status;
}

// serve_safely serves in safe mode. A frame of its own: the options that were good last are as large as three pages.
[[gnu::noinline]] int serve_safely(Options& options, SafeMode& safe, int count, char** arguments) noexcept {
  Options last_good;
  const bool usable = safe.read_good({arguments, static_cast<std::size_t>(count)}, last_good);
  safe.apply(options, usable ? &last_good : nullptr);
  return serve(options, safe, count, arguments);
}

// start serves, in safe mode where it must. `good` tells that the options are in order.
int start(Options& options, bool good, int count, char** arguments) noexcept {
  SafeMode safe;
  if (!options.check && !safe.begin(options, good, {arguments, static_cast<std::size_t>(count)})) return 0;
  if (safe.on()) return serve_safely(options, safe, count, arguments);
  return good ? serve(options, safe, count, arguments) : 2;
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 0 && is_coirctl(arguments[0])) return coirctl(count, arguments);
  hold_hangup(SIG_BLOCK);
  fill_standard_streams();
  // sendfile(2) has no flag against it; every other write has.
  signal(SIGPIPE, SIG_IGN);
  // A file that may not grow is an error of its write.
  signal(SIGXFSZ, SIG_IGN);
  Options options;
  const bool good = parse_options(count, arguments, options);
  // Options that are wrong do not keep coird from safe mode.
  if (!good && (options.check || options.action != Options::Action::serve)) return 2;
  switch (options.action) {
    case Options::Action::help:
      print_help();
      return printed();
    case Options::Action::version:
      print({"coird " COIR_VERSION " for ", coir::port::board_name()});
      return printed();
    case Options::Action::probe:
      return print_probe();
    case Options::Action::print_budget: {
      coir::http::MemoryPlan budget;
      if (!plan_budget(options, budget)) return 2;
      fit_descriptors(options);
      return print_budget(options, budget) ? printed() : 2;
    }
    case Options::Action::print_config:
      print_config(options);
      return printed();
    case Options::Action::hash_password:
    case Options::Action::hash_token:
#if COIR_TLS && COIR_SITE
      return print_credential(options);
#endif
    case Options::Action::serve:
      return start(options, good, count, arguments);
  }
}
