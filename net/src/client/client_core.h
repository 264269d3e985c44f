#pragma once

#include <coir/http/client.h>
#if !COIR_NO_ASYNC
#include <coir/once.h>
#include <coir/semaphore.h>
#endif

#include "client/proxies.h"
#include "outbound/connection_pool.h"

namespace coir::http::detail {

// ClientCore is what a Client is a handle of. client.cpp has it.
struct ClientCore {
  explicit ClientCore(const ClientOptions& given) noexcept;
  ~ClientCore();
  ClientCore(const ClientCore&) = delete;
  ClientCore& operator=(const ClientCore&) = delete;

  // enter waits for one of the places that requests under way have; leave gives it back. Errors: timed_out, cancelled;
  // limit (no place, and nothing that could free one while this caller waits).
  std::expected<void, Error> enter(Deadline deadline) noexcept;
  void leave() noexcept;

#if COIR_TLS
  // trust, of trust.cpp, returns the context for connections to https. The system's authorities are read with the first
  // call, for which the others wait until `deadline`. Errors: not_found (there are none), those of TlsContext::client and
  // File; timed_out, cancelled.
  std::expected<TlsContext, Error> trust(Deadline deadline) noexcept;
#endif

  ClientOptions options;
  Proxies proxies;
  ConnectionPool pool;
#if COIR_TLS
  TlsContext system_trust;
#if !COIR_NO_ASYNC
  Once trust_read;
#endif
#endif

 private:
#if COIR_NO_ASYNC
  std::uint64_t places_;
#else
  Semaphore places_;
#endif
};

}  // namespace coir::http::detail
