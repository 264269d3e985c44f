#pragma once

#include <coir/config.h>

#include "options.h"

// What coird passes on to other servers: --proxy. A build without it (-DCOIR_PROXY=OFF), or without fibers, refuses the
// option.
#define COIRD_GATEWAY (COIR_PROXY && !COIR_NO_ASYNC)

// apply_gateway takes an option of those. False: one line on standard error has said what is wrong.
[[nodiscard]] bool apply_gateway(int chosen, const char* text, Options& options) noexcept;

#if COIRD_GATEWAY
#include <coir/http/proxy.h>
#include <coir/http/upstreams.h>
#include <coir/net/stream.h>
#if COIR_TLS
#include <coir/net/tls.h>
#endif

#include <optional>
#include <string_view>

// Gateway is the paths that are passed on, and to whom.
class Gateway {
 public:
  // open prepares what the options name; nobody is asked yet. False: one line has said why not.
  [[nodiscard]] bool open(const Options& options) noexcept;

  // serve answers a request whose path is passed on. False: it is not.
  bool serve(coir::http::Exchange& exchange) noexcept;

 private:
  struct Route {
    std::string_view prefix;
    std::string_view base = {};  // stands in the prefix's place, where replaces
    bool replaces = false;
    std::optional<coir::http::Upstreams> upstreams = {};
  };

  bool add(const Options::Proxied& proxied, Route& route) noexcept;

  Route routes_[Options::kMaxProxied];
  std::size_t count_ = 0;
  std::optional<coir::http::Forwarder> forwarder_;
#if COIR_TLS
  coir::TlsContext trust_;
#endif
};
#endif
