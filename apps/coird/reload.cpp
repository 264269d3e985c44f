#include <coir/program.h>
#include <coir/stack_size.h>

#include <string_view>
#include <utility>

#include "auth.h"
#include "complaint.h"
#include "daemon.h"
#include "life/notify.h"
#include "options/row.h"

#if !COIR_NO_ASYNC
#include <coir/atomic.h>
#include <coir/cancel_scope.h>
#include <coir/fiber.h>
#include <coir/mutex.h>
#endif

using coir::operator""_KiB;

namespace {

constexpr const char* kStays = "the old configuration stays";

// Fresh is what has been read, and does not count yet.
struct Fresh {
#if COIR_TLS
  coir::TlsContext certificates;
#endif
  bool any = false;  // something was there to be read
};

#if COIR_TLS
bool read_certificates(Daemon& daemon, const Options& options, Fresh& fresh) noexcept {
  if (daemon.tls_slot() == nullptr) return true;
  fresh.any = true;
  fresh.certificates = daemon.tls.load_again(options, "the old certificates stay");
  return bool(fresh.certificates);
}

void use_certificates(Daemon& daemon, Fresh& fresh) noexcept {
  if (daemon.tls_slot() == nullptr) return;
  daemon.tls.use(std::move(fresh.certificates), *daemon.options);
  say({"certificates read again"});
}
#else
bool read_certificates(Daemon&, const Options&, Fresh&) noexcept {
  return true;
}

void use_certificates(Daemon&, Fresh&) noexcept {}
#endif

#if COIR_TLS && COIR_SITE
bool read_credentials(Daemon& daemon, Fresh& fresh) noexcept {
  if (!daemon.credentials) return true;
  fresh.any = true;
  return read_auth({daemon.options->credentials, daemon.options, "auth"}, *daemon.credentials,
                   "the old credentials stay");
}

void use_credentials(Daemon& daemon) noexcept {
  if (!daemon.credentials) return;
  daemon.credentials->apply();
  say({"credentials read again"});
}
#else
bool read_credentials(Daemon&, Fresh&) noexcept {
  return true;
}

void use_credentials(Daemon&) noexcept {}
#endif

#if COIRD_GATEWAY
bool use_routes(Daemon& daemon, const Options& options, Fresh& fresh) noexcept {
  if (!daemon.gateway || !options.passes_on()) return true;
  if (options.config == nullptr && options.routes == nullptr) return true;
  fresh.any = true;
  return daemon.gateway->reload(options);
}
#else
bool use_routes(Daemon&, const Options&, Fresh&) noexcept {
  return true;
}
#endif

// have_count has what is read count, all of it or nothing. False: something is not in order, and a line has said so.
bool have_count(Daemon& daemon, const Options& options) noexcept {
  Fresh fresh;
  OpenedListeners opened;
  if (!read_certificates(daemon, options, fresh) || !read_credentials(daemon, fresh)) return false;
  if (!daemon.listeners.open(options, opened, &*daemon.server, daemon.tls_slot())) return false;
  // Before the first change that cannot be undone.
  if (!daemon.listeners.serve(options, opened, *daemon.server, daemon.tls_slot())) return false;
  if (!use_routes(daemon, options, fresh)) {
    daemon.listeners.take_back(options, opened, *daemon.server, daemon.tls_slot());
    return false;
  }
  use_credentials(daemon);
  use_certificates(daemon, fresh);
  coir::set_log_level(options.log_level);
  daemon.listeners.settle(options, opened, *daemon.server);
  if (!fresh.any && options.config == nullptr) say({"SIGHUP: there is nothing to read again"});
  return true;
}

// nth is the setting of a row that has `before` others of it in front; null: there are not so many.
const Setting* nth(const Settings& settings, const Row* row, std::size_t before) noexcept {
  const Setting* found = nullptr;
  settings.each([&](const Setting& each) {
    if (each.row == row && found == nullptr && before-- == 0) found = &each;
  });
  return found;
}

// tell_restarts names the options that are not as they were, and cannot change while coird runs.
void tell_restarts(const Options& old, const Options& now) noexcept {
  for (const Row& row : all_rows()) {
    if (row.reload) continue;  // and sections [route PREFIX] are of no row
    for (std::size_t i = 0;; ++i) {
      const Setting* const before = nth(old.settings, &row, i);
      const Setting* const after = nth(now.settings, &row, i);
      if (before == nullptr && after == nullptr) break;
      if (before != nullptr && after != nullptr && std::string_view(before->text) == after->text) continue;
      if (after != nullptr) {
        after->wrong("restart coird", {"takes effect after a restart"});
      } else {
        warn({now.config, ": ", row.name, ": removed, but still in effect; restart coird"});
      }
      break;
    }
  }
}

// tell_routes_restart does so for routes, of which those to FastCGI stay as they are, as does whether there are any.
void tell_routes_restart(const Options& old, const Options& now) noexcept {
  bool same = old.passes_on() == now.passes_on() && old.application_count == now.application_count;
  for (std::size_t i = 0; same && i < now.application_count; ++i) {
    const Options::Proxied &before = old.applications[i], &after = now.applications[i];
    same = before.prefix == after.prefix && before.urls == after.urls && before.words == after.words;
  }
  if (!same) warn({now.config, ": the first route, and routes to FastCGI, take effect after a restart; restart coird"});
}

bool read_all(Daemon& daemon) noexcept {
  if (daemon.safe != nullptr) {
    warn({"SIGHUP: nothing is read again in safe mode; restart coird"});
    return false;
  }
  const Options& old = *daemon.options;
  if (old.config == nullptr) return have_count(daemon, old);
  Options now;
  if (!parse_options(static_cast<int>(daemon.arguments.size()), daemon.arguments.data(), now) ||
      !have_count(daemon, now)) {
    warn({kStays});
    return false;
  }
  tell_restarts(old, now);
  tell_routes_restart(old, now);
  say({now.config, " read again"});
  return true;
}

bool read_again(Daemon& daemon) noexcept {
  notify_reloading();
  const bool counts = read_all(daemon);
  daemon.reloaded.store(counts);
  if (counts) daemon.reloaded_at.store(static_cast<std::uint64_t>(::time(nullptr)));
  notify_ready();
  return counts;
}

#if !COIR_NO_ASYNC
// A signal, a command by MQTT and coirctl may come at the same time.
constinit coir::Mutex g_one_at_a_time;
constinit coir::Atomic<bool> g_ended{false};

bool read_in_turn(Daemon& daemon) noexcept {
  const auto turn = g_one_at_a_time.lock();
  if (!turn) return false;
  if (!g_ended.load()) return read_again(daemon);
  warn({"SIGHUP: coird ends; ", kStays});
  return false;
}
#endif

}  // namespace

bool reload(Daemon& daemon) noexcept {
#if COIR_NO_ASYNC
  return read_again(daemon);
#else
  // All options at once are some kilobytes, and so are the files of eight certificates.
  bool counts = false;
  coir::Fiber fiber = coir::spawn({.name = "reload", .stack = 64_KiB}, [&] { counts = read_in_turn(daemon); });
  if (!fiber.started()) {
    daemon.reloaded.store(false);
    warn({"SIGHUP: ", fiber.error(), "; ", kStays});
    return false;
  }
  // It writes to this frame.
  const coir::Shield shield(coir::Deadline::never());
  static_cast<void>(fiber.join());
  return counts;
#endif
}

void end_reloads() noexcept {
#if !COIR_NO_ASYNC
  g_ended.store(true);
  const coir::Shield shield(coir::Deadline::never());
  static_cast<void>(g_one_at_a_time.lock());
#endif
}
