#pragma once

#include <coir/config.h>

#include "options/options.h"

// The requests that coird passes on to other servers: --proxy and --routes. A build without it (-DCOIR_PROXY=OFF), or
// without fibers, refuses the options.
#define COIRD_GATEWAY (COIR_PROXY && !COIR_NO_ASYNC)

#if COIRD_GATEWAY
// take_proxy is null in a build that lacks it.
[[nodiscard]] bool take_proxy(const Setting& setting, Options& options) noexcept;

// take_route takes a section [route PREFIX] of the file: its keys, of which one is url.
[[nodiscard]] bool take_route(std::string_view prefix, std::span<const Setting> keys, Options& options) noexcept;
#else
inline constexpr Take take_proxy = nullptr;
#endif

#if COIRD_GATEWAY
#include <coir/http/proxy_table.h>
#include <coir/net/stream.h>
#if COIR_TLS
#include <coir/tls.h>
#endif

#include <cstddef>
#include <optional>

#include "route_auth.h"

// tell_of_upstream says in a line that a server has gone down, or has come back. For on_change.
void tell_of_upstream(const coir::http::UpstreamNews& news) noexcept;

// Gateway forwards requests to the servers of --proxy and --routes.
class Gateway {
 public:
  // open prepares what the options name; nobody is asked yet. False: one line has said why not.
  [[nodiscard]] bool open(const Options& options) noexcept;

  // reload has the routes of the options count, and reads their file again. A line says what has become of them. False:
  // the old ones stay.
  bool reload(const Options& options) noexcept;

  // planned_bytes is what the routes of the options take; nothing: a line has said what is wrong with them.
  static std::optional<std::size_t> planned_bytes(const Options& options) noexcept;

  // watch begins to look after the servers, and after a reload after those that are new. On a fiber.
  void watch() noexcept;

  const coir::http::Proxy& proxy() const noexcept { return *proxy_; }

  // serve answers a request whose path is passed on. False: it is not.
  bool serve(coir::http::Exchange& exchange) noexcept;

 private:
  // apply has the routes of the options count. Nothing: a line has said why not, with `stays` at its end.
  std::optional<coir::http::ProxyChange> apply(const Options& options, const char* stays) noexcept;

#if COIR_TLS
  coir::TlsContext trust_;  // outlives the groups
#endif
#if COIRD_ROUTE_AUTH
  RouteAuth auth_;
#endif
  std::optional<coir::http::Proxy> proxy_;
};
#endif
