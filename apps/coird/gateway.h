#pragma once

#include <coir/config.h>

#include "options.h"

// What coird passes on to other servers: --proxy and --routes. A build without it (-DCOIR_PROXY=OFF), or without fibers, refuses the
// options.
#define COIRD_GATEWAY (COIR_PROXY && !COIR_NO_ASYNC)

// apply_gateway takes an option of those. False: one line on standard error has said what is wrong.
[[nodiscard]] bool apply_gateway(int chosen, const char* text, Options& options) noexcept;

#if COIRD_GATEWAY
#include <coir/file.h>
#include <coir/http/proxy.h>
#include <coir/http/route_line.h>
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
  static constexpr std::size_t kMostText = 16 * 1024;  // of the file of routes

  struct Route {
    coir::http::RouteLine line = {};
    std::string_view base = {};  // stands in the prefix's place, if it is not empty
    std::optional<coir::http::Upstreams> upstreams = {};
  };

  // read_routes adds what the file says; `tls` is set where a server is asked by https.
  bool read_routes(const char* path, bool& tls) noexcept;

  std::optional<coir::FileBytes> text_;  // the file of routes, which the lines point into
  Route routes_[Options::kMaxProxied];
  std::size_t count_ = 0;
  std::optional<coir::http::Forwarder> forwarder_;
#if COIR_TLS
  coir::TlsContext trust_;
#endif
};
#endif
