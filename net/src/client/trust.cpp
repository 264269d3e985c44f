// This file chooses the certificates that a client trusts. Declared in client/client_core.h.
#include <coir/net/certificates.h>

#include "client/client_core.h"
#include "client/client_fault.h"

namespace coir::http::detail {

namespace {

// mbedTLS keeps about as much of a bundle as it is long.
[[gnu::noinline]] std::expected<TlsContext, Error> read_system_trust() noexcept {
  const auto bundle = read_system_authorities();
  if (bundle) return TlsContext::client({.authorities = bundle->text()});
  if (!(bundle.error() == ErrorCode::not_found)) return std::unexpected(bundle.error());
  return std::unexpected(client_error(ErrorCode::not_found, ClientFault::no_trust));
}

}  // namespace

std::expected<TlsContext, Error> ClientCore::trust([[maybe_unused]] Deadline deadline) noexcept {
  if (options.tls) return options.tls;
  const auto read = [this]() -> std::expected<void, Error> {
    auto made = read_system_trust();
    if (!made) return std::unexpected(made.error());
    system_trust = std::move(*made);
    return {};
  };
#if COIR_NO_ASYNC
  if (system_trust) return system_trust;
  const auto outcome = read();
#else
  const auto outcome = trust_read.call(read, deadline);
  // A plain thread beside the only worker cannot wait for a fiber that reads them, and reads them for itself.
  if (!outcome && outcome.error() == ErrorCode::unsupported) return read_system_trust();
#endif
  if (!outcome) return std::unexpected(outcome.error());
  return system_trust;
}

}  // namespace coir::http::detail
