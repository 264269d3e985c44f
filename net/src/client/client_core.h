#pragma once

#include <coir/http/client.h>
#include <coir/pressure.h>

#include "client/connection_pool.h"
#include "client/proxies.h"

namespace coir::http::detail {

// ClientCore is what a Client is a handle of. client.cpp has it.
struct ClientCore {
  explicit ClientCore(const ClientOptions& given) noexcept;
  ~ClientCore();
  ClientCore(const ClientCore&) = delete;
  ClientCore& operator=(const ClientCore&) = delete;

#if COIR_TLS
  // trust, of trust.cpp, returns the context for connections to https. The system's authorities are read with the first
  // call. Errors: not_found (there are none), those of TlsContext::client and File.
  std::expected<TlsContext, Error> trust() noexcept;
#endif

  ClientOptions options;
  Proxies proxies;
  ConnectionPool pool;
#if COIR_TLS
  Spinlock trust_lock;
  TlsContext system_trust;
#endif

 private:
  static std::size_t give(void* core, std::size_t wanted) noexcept;

  Relief relief_;
};

}  // namespace coir::http::detail
