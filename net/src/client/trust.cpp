// Whom the client trusts. Declared in client/client_core.h.
#include <coir/net/certificates.h>

#include "client/client_core.h"
#include "client/client_fault.h"

namespace coir::http::detail {

// mbedTLS keeps about as much of a bundle as it is long.
std::expected<TlsContext, Error> ClientCore::trust() noexcept {
  if (options.tls) return options.tls;
  {
    const Locked locked(trust_lock);
    if (system_trust) return system_trust;
  }
  const auto bundle = read_system_authorities();
  if (!bundle) {
    if (!(bundle.error() == ErrorCode::not_found)) return std::unexpected(bundle.error());
    return std::unexpected(client_error(ErrorCode::not_found, ClientFault::no_trust));
  }
  auto read = TlsContext::client({.authorities = bundle->text()});
  if (!read) return read;
  const Locked locked(trust_lock);
  if (!system_trust) system_trust = std::move(*read);
  return system_trust;
}

}  // namespace coir::http::detail
