#include "credentials.h"

#include <coir/config.h>

#if COIR_TLS

#include <string_view>
#include <utility>

#include "complaint.h"
#include "own_certificate.h"
#include "private_file.h"

namespace {

constexpr std::size_t kMostBytes = 256 * 1024;

// read reads what an option names. False: one line has said why not.
bool read(const NamedFile& named, bool secret, coir::FileBytes& into, const char* cure) noexcept {
  auto file = secret ? open_private(named, cure) : open_named(named, cure);
  if (!file) return false;
  auto bytes = file->read_all(coir::account::process, kMostBytes);
  if (!bytes) return named.wrong(cure, {bytes.error()});
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
    const NamedFile chain{options.certificates[i], &options, "cert"}, key{options.keys[i], &options, "key"};
    if (!read(chain, false, chains[i].bytes, cure) || !read(key, true, keys[i].bytes, cure)) return {};
    certificates[i] = {.chain = chains[i].bytes.text(), .key = keys[i].bytes.text()};
  }
  const NamedFile trusted{options.client_authorities, &options, "client-ca"};
  if (options.client_authorities != nullptr && !read(trusted, false, authorities, cure)) return {};
  coir::TlsContext::Server wishes{.certificates = std::span(certificates, options.certificate_count),
                                  .protocols = kProtocols};
  if (options.client_authorities != nullptr) wishes.client_authorities = authorities.text();
  auto context = coir::TlsContext::server(wishes);
  if (context) return std::move(*context);
  const coir::TlsFault fault = coir::tls_fault(context.error());
  NamedFile at_fault{options.certificates[fault.certificate], &options, "cert"};
  if (fault.input == coir::TlsFault::Input::key) at_fault = {options.keys[fault.certificate], &options, "key"};
  if (fault.input == coir::TlsFault::Input::authorities) at_fault = trusted;
  at_fault.wrong(cure, {context.error()});
  return {};
}

#endif
