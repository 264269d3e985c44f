#include <coir/net/certificates.h>
#include <coir/tls.h>
#include <stdlib.h>

namespace coir {
namespace {

constexpr std::size_t kMostBytes = 1024 * 1024;

constexpr const char* kPlaces[] = {"/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/cert.pem",
                                   "/etc/pki/tls/certs/ca-bundle.crt"};

std::expected<FileBytes, Error> read_bundle(const char* path) noexcept {
  auto file = File::open(path);
  if (!file) return std::unexpected(file.error());
  return file->read_all(account::tls, kMostBytes);
}

}  // namespace

std::expected<FileBytes, Error> read_system_authorities() noexcept {
  if (const char* const path = getenv("SSL_CERT_FILE"); path != nullptr) return read_bundle(path);
  std::expected<FileBytes, Error> bundle = std::unexpected(Error{ErrorCode::not_found});
  for (const char* const place : kPlaces) {
    bundle = read_bundle(place);
    if (bundle || !(bundle.error() == ErrorCode::not_found)) break;
  }
  return bundle;
}

}  // namespace coir
