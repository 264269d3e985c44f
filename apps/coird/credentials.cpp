#include "credentials.h"

#include <coir/config.h>

#if COIR_TLS

#include <optional>
#include <string_view>
#include <utility>

#include "complaint.h"
#include "own_certificate.h"
#include "private_file.h"

namespace {

constexpr std::size_t kMostBytes = 256 * 1024;

bool read(const char* path, coir::FileBytes& into, const char* cure, bool secret = false) noexcept {
  std::optional<coir::File> file;
  if (secret) {
    file = open_private(path, cure);
    if (!file) return false;
  } else {
    auto opened = coir::File::open(path);
    if (!opened) return complain(cure, {path, ": ", opened.error()});
    file = std::move(*opened);
  }
  auto bytes = file->read_all(coir::account::process, kMostBytes);
  if (!bytes) return complain(cure, {path, ": ", bytes.error()});
  into = std::move(*bytes);
  return true;
}

}  // namespace

coir::TlsContext load_credentials(const Options& options, bool at_start, const char* cure) noexcept {
  if (options.certificate_count == 0) return use_own_certificate(options, at_start, cure);
  // A certificate and its key may be one file.
  SecretBytes chains[Options::kMaxCertificates], keys[Options::kMaxCertificates];
  coir::FileBytes authorities;
  coir::TlsCertificate certificates[Options::kMaxCertificates];
  for (std::size_t i = 0; i < options.certificate_count; ++i) {
    if (!read(options.certificates[i], chains[i].bytes, cure) || !read(options.keys[i], keys[i].bytes, cure, true))
      return {};
    certificates[i] = {.chain = chains[i].bytes.text(), .key = keys[i].bytes.text()};
  }
  if (options.client_authorities != nullptr && !read(options.client_authorities, authorities, cure)) return {};
  coir::TlsContext::Server wishes{.certificates = std::span(certificates, options.certificate_count),
                                  .protocols = kProtocols};
  if (options.client_authorities != nullptr) wishes.client_authorities = authorities.text();
  auto context = coir::TlsContext::server(wishes);
  if (context) return std::move(*context);
  const coir::TlsFault fault = coir::tls_fault(context.error());
  const char* at_fault = options.certificates[fault.certificate];
  if (fault.input == coir::TlsFault::Input::key) at_fault = options.keys[fault.certificate];
  if (fault.input == coir::TlsFault::Input::authorities) at_fault = options.client_authorities;
  complain(cure, {at_fault, ": ", coir::describe_tls(context.error())});
  return {};
}

#endif
