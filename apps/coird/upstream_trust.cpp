#include "upstream_trust.h"

#if COIR_TLS && COIR_PROXY && !COIR_NO_ASYNC

#include <coir/http/server.h>
#include <coir/net/certificates.h>

#include "complaint.h"
#include "private_file.h"

namespace {

constexpr std::size_t kMostTrustBytes = 1024 * 1024;

// read_pem reads a file that an option names. False: one line has said why not.
bool read_pem(const char* option, const char* path, coir::FileBytes& into) noexcept {
  auto file = coir::File::open(path);
  auto bytes = file ? file->read_all(coir::account::tls, kMostTrustBytes) : std::unexpected(file.error());
  if (!bytes) return complain("name a file of PEM", {option, " '", path, "': ", describe(bytes.error())});
  into = std::move(*bytes);
  return true;
}

bool read_key(const char* path, coir::FileBytes& into) noexcept {
  const auto file = open_private({path}, "--proxy-key names a file of PEM");
  if (!file) return false;
  auto bytes = file->read_all(coir::account::tls, kMostTrustBytes);
  if (!bytes) return complain("name a file of PEM", {"--proxy-key '", path, "': ", describe(bytes.error())});
  into = std::move(*bytes);
  return true;
}

bool read_authorities(const Options& options, coir::FileBytes& into) noexcept {
  if (options.proxy_authorities != nullptr) return read_pem("--proxy-ca", options.proxy_authorities, into);
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
    if (!read_pem("--proxy-cert", options.proxy_certificate, chain.bytes) || !read_key(options.proxy_key, key.bytes))
      return {};
    own = {.chain = chain.bytes.text(), .key = key.bytes.text()};
    wishes.certificate = &own;
  }
  auto context = coir::TlsContext::client(wishes);
  if (context) return std::move(*context);
  using Input = coir::TlsFault::Input;
  const Input input = coir::tls_fault(context.error()).input;
  complain("--proxy-ca, --proxy-cert and --proxy-key name files of PEM",
           {input == Input::key           ? options.proxy_key
            : input != Input::authorities ? options.proxy_certificate
            : options.proxy_authorities   ? options.proxy_authorities
                                          : "the certificates that this machine trusts",
            ": ", context.error()});
  return {};
}

#endif
