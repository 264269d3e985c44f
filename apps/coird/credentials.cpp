#include "credentials.h"

#include <coir/config.h>

#if COIR_TLS

#include <string_view>
#include <utility>

#include "complaint.h"
#include "own_certificate.h"

namespace {

constexpr std::size_t kMostBytes = 256 * 1024;

// read_into reads what an option names. False: one line has said why not.
bool read_into(coir::FileBytes& into, const NamedFile& named, bool secret, const char* cure) noexcept {
  auto file = secret ? open_private(named, cure) : open_named(named, cure);
  if (!file) return false;
  auto bytes = file->read_all(coir::account::process, kMostBytes);
  if (!bytes) return named.wrong(cure, {bytes.error()});
  into = std::move(*bytes);
  return true;
}

}  // namespace

bool CredentialFiles::read(const Options& options, const char* cure) noexcept {
  for (std::size_t i = 0; i < options.certificate_count; ++i) {
    const NamedFile chain{options.certificates[i], &options, "cert"}, key{options.keys[i], &options, "key"};
    if (!read_into(chains_[i].bytes, chain, false, cure) || !read_into(keys_[i].bytes, key, true, cure)) return false;
  }
  if (options.certificate_count == 0 || options.client_authorities == nullptr) return true;
  return read_into(authorities_, {options.client_authorities, &options, "client-ca"}, false, cure);
}

coir::TlsContext CredentialFiles::make(const Options& options, bool at_start, const char* cure) const noexcept {
  if (options.certificate_count == 0) return use_own_certificate(options, at_start, cure);
  coir::TlsCertificate certificates[Options::kMaxCertificates];
  for (std::size_t i = 0; i < options.certificate_count; ++i)
    certificates[i] = {.chain = chains_[i].bytes.text(), .key = keys_[i].bytes.text()};
  coir::TlsContext::Server wishes{.certificates = std::span(certificates, options.certificate_count),
                                  .protocols = kProtocols};
  if (options.client_authorities != nullptr) wishes.client_authorities = authorities_.text();
  auto context = coir::TlsContext::server(wishes);
  if (context) return std::move(*context);
  const coir::TlsFault fault = coir::tls_fault(context.error());
  NamedFile at_fault{options.certificates[fault.certificate], &options, "cert"};
  if (fault.input == coir::TlsFault::Input::key) at_fault = {options.keys[fault.certificate], &options, "key"};
  if (fault.input == coir::TlsFault::Input::authorities) at_fault = {options.client_authorities, &options, "client-ca"};
  at_fault.wrong(cure, {context.error()});
  return {};
}

coir::TlsContext load_credentials(const Options& options, bool at_start, const char* cure) noexcept {
  CredentialFiles files;
  return files.read(options, cure) ? files.make(options, at_start, cure) : coir::TlsContext();
}

#endif
