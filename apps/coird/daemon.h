#pragma once

#include <coir/atomic.h>
#include <coir/config.h>
#include <coir/http/files.h>
#include <coir/http/metrics.h>
#include <coir/http/server.h>

#include <time.h>

#include <cstdint>
#include <optional>
#include <span>

#include "board_parts.h"
#include "dashboard/dashboard.h"
#include "gateway.h"
#include "life/safe_mode.h"
#include "listeners.h"
#include "mcp/serving.h"
#include "options/options.h"
#include "scripts.h"
#include "tls_start.h"

#if COIR_TLS && COIR_SITE
#include <coir/http/authorization.h>
#endif

// Daemon is what the handler answers from.
struct Daemon {
  std::optional<coir::http::FileTree> files;
  std::optional<coir::http::Server> server;
  coir::http::Metrics metrics;
  BoardParts board;
  Listeners listeners;
#if COIRD_GATEWAY
  std::optional<Gateway> gateway;
#endif
#if COIRD_SCRIPTS
  std::optional<Scripts> scripts;
#endif
#if COIRD_MCP
  std::optional<McpServing> mcp;
#endif
#if COIR_DASHBOARD
  std::optional<Dashboard> dashboard;
#endif
  const Options* options = nullptr;        // that it was started with
  std::span<char*> arguments;              // the command line, which is read again with the file of --config
  const Announcing* announcing = nullptr;  // while it serves
  const SafeMode* safe = nullptr;          // in safe mode
  coir::Atomic<bool> drains = false;       // coird ends
  // The last reload, or the start, has had its configuration count; when one last did, in Unix seconds.
  coir::Atomic<bool> reloaded = true;
  coir::Atomic<std::uint64_t> reloaded_at = static_cast<std::uint64_t>(::time(nullptr));
#if COIR_TLS
  TlsStart tls;
#endif
#if COIR_TLS && COIR_SITE
  std::optional<coir::http::CredentialStore> credentials;
#endif

  // tls_slot is the context of the listeners with TLS; null: there is none.
  coir::TlsContextSlot* tls_slot() noexcept {
#if COIR_TLS
    return tls.slot();
#else
    return nullptr;
#endif
  }
};

// add_metrics names what /metrics shows, once all parts are open.
void add_metrics(Daemon& daemon) noexcept;

// answer is the handler of coird's server.
void answer(Daemon& daemon, coir::http::Exchange& exchange);

// watch_upstreams starts to watch the servers that requests are forwarded to. On a fiber, once the server has started.
void watch_upstreams(Daemon& daemon) noexcept;

// drain has coird end, as SIGTERM does. False: it ends already; a second signal would cut off the requests in progress.
bool drain(Daemon& daemon) noexcept;

// reload follows SIGHUP: it reads the file of --config again, and the files of certificates,
// credentials and routes. Either all of them count from now on or, if one is not in order, none does and what was
// before stays: false. It always says what it did, and which settings want a restart.
bool reload(Daemon& daemon) noexcept;

// end_reloads waits for a reload in progress, and has later ones refused: what they read into goes now.
void end_reloads() noexcept;
