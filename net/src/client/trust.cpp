// The system's certificate authorities. Declared in client/client_core.h.
#include <coir/file.h>
#include <stdlib.h>

#include "client/client_core.h"
#include "client/client_fault.h"

namespace coir::http::detail {
namespace {

// Bundles have some 230 KB; mbedTLS keeps about as much of one, charged to account::tls.
constexpr std::size_t kMostBytes = 1024 * 1024;

constexpr const char* kPlaces[] = {"/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/cert.pem",
                                   "/etc/pki/tls/certs/ca-bundle.crt"};

std::expected<TlsContext, Error> read_trust(const char* path) noexcept {
  auto file = File::open(path);
  if (!file) return std::unexpected(file.error());
  const auto bundle = file->read_all(account::tls, kMostBytes);
  if (!bundle) return std::unexpected(bundle.error());
  return TlsContext::client({.authorities = bundle->text()});
}

}  // namespace

std::expected<TlsContext, Error> ClientCore::trust() noexcept {
  if (options.tls) return options.tls;
  {
    const Locked locked(trust_lock);
    if (system_trust) return system_trust;
  }
  std::expected<TlsContext, Error> read = std::unexpected(client_error(ErrorCode::not_found, ClientFault::no_trust));
  if (const char* const path = getenv("SSL_CERT_FILE"); path != nullptr) {
    read = read_trust(path);
  } else {
    for (const char* const place : kPlaces) {
      read = read_trust(place);
      if (read || !(read.error() == ErrorCode::not_found)) break;
    }
  }
  if (!read) {
    if (read.error() == ErrorCode::not_found) read.error() = client_error(ErrorCode::not_found, ClientFault::no_trust);
    return read;
  }
  const Locked locked(trust_lock);
  if (!system_trust) system_trust = *read;
  return system_trust;
}

}  // namespace coir::http::detail
