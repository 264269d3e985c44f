#include "upstream_trust.h"

#if COIR_TLS && COIR_PROXY && !COIR_NO_ASYNC

#include <coir/http/server.h>
#include <coir/net/certificates.h>

#include "complaint.h"
#include "private_file.h"
#include "state.h"

namespace {

constexpr std::size_t kMostTrustBytes = 1024 * 1024;

constexpr const char* kPem = "name a file of PEM";

// read_pem reads a file that an option names. False: one line has said why not.
bool read_pem(const NamedFile& named, std::optional<coir::File> file, coir::FileBytes& into) noexcept {
  if (!file) return false;
  auto bytes = file->read_all(coir::account::tls, kMostTrustBytes);
  if (!bytes) return named.wrong(kPem, {bytes.error()});
  into = std::move(*bytes);
  return true;
}

bool read_public(const NamedFile& named, coir::FileBytes& into) noexcept {
  return read_pem(named, open_named(named, kPem), into);
}

bool read_authorities(const Options& options, coir::FileBytes& into) noexcept {
  if (options.proxy_authorities != nullptr) return read_public({options.proxy_authorities, &options, "proxy-ca"}, into);
  auto bundle = coir::read_system_authorities();
  if (!bundle) {
    return complain("--proxy-ca names a file of certificates",
                    {"--proxy with https: the certificates that this machine trusts: ", describe(bundle.error())});
  }
  into = std::move(*bundle);
  return true;
}

}  // namespace

coir::TlsContext load_upstream_trust(const Options& options) noexcept {
  coir::FileBytes authorities;
  SecretBytes chain, key;
  if (!read_authorities(options, authorities)) return {};
  coir::TlsCertificate own;
  coir::TlsContext::Client wishes{.authorities = authorities.text()};
  if (options.proxy_certificate != nullptr) {
    const NamedFile secret{options.proxy_key, &options, "proxy-key"};
    if (!read_public({options.proxy_certificate, &options, "proxy-cert"}, chain.bytes) ||
        !read_pem(secret, open_private(secret, kPem), key.bytes))
      return {};
    own = {.chain = chain.bytes.text(), .key = key.bytes.text()};
    wishes.certificate = &own;
  }
  // A key is checked with them.
  if (wishes.certificate != nullptr && !wait_for_randomness()) return {};
  auto context = coir::TlsContext::client(wishes);
  if (context) return std::move(*context);
  using Input = coir::TlsFault::Input;
  const Input input = coir::tls_fault(context.error()).input;
  if (input == Input::key) {
    options.wrong("proxy-key", options.proxy_key, kPem, {context.error()});
  } else if (input != Input::authorities && options.proxy_certificate != nullptr) {
    options.wrong("proxy-cert", options.proxy_certificate, kPem, {context.error()});
  } else if (options.proxy_authorities != nullptr) {
    options.wrong("proxy-ca", options.proxy_authorities, kPem, {context.error()});
  } else {
    complain("--proxy-ca names a file of certificates",
             {"the certificates that this machine trusts: ", context.error()});
  }
  return {};
}

#endif
