#include "upstream_trust.h"

#if COIR_TLS && COIR_PROXY && !COIR_NO_ASYNC

#include <coir/file.h>
#include <coir/http/accounts.h>
#include <string.h>

#include "complaint.h"

namespace {

constexpr const char* kSystem[] = {"/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/cert.pem"};
constexpr std::size_t kMostTrustBytes = 1024 * 1024;

// read_pem reads a file that an option names. False: one line has said why not.
bool read_pem(const char* option, const char* path, coir::FileBytes& into) noexcept {
  auto file = coir::File::open(path);
  auto bytes = file ? file->read_all(coir::account::tls, kMostTrustBytes) : std::unexpected(file.error());
  if (!bytes) return complain("name a file of PEM", {option, " '", path, "': ", describe(bytes.error())});
  into = std::move(*bytes);
  return true;
}

// SecretFile wipes what it has read.
struct SecretFile {
  ~SecretFile() {
    if (bytes.size() != 0) explicit_bzero(const_cast<char*>(bytes.bytes().data()), bytes.size());
  }
  coir::FileBytes bytes;
};

// read_authorities returns the file's path; null: one line has said why there is none.
const char* read_authorities(const Options& options, coir::FileBytes& into) noexcept {
  if (const char* const named = options.proxy_authorities) return read_pem("--proxy-ca", named, into) ? named : nullptr;
  for (const char* const path : kSystem) {
    if (coir::File::open(path)) return read_pem("--proxy-ca", path, into) ? path : nullptr;
  }
  complain("--proxy-ca names a file of certificates",
           {"--proxy with https: this machine has no certificates to trust"});
  return nullptr;
}

}  // namespace

coir::TlsContext load_upstream_trust(const Options& options) noexcept {
  coir::FileBytes authorities;
  SecretFile chain, key;
  const char* const path = read_authorities(options, authorities);
  if (path == nullptr) return {};
  coir::TlsCertificate own;
  coir::TlsContext::Client wishes{.authorities = authorities.text()};
  if (options.proxy_certificate != nullptr) {
    if (!read_pem("--proxy-cert", options.proxy_certificate, chain.bytes) ||
        !read_pem("--proxy-key", options.proxy_key, key.bytes))
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
            : input == Input::authorities ? path
                                          : options.proxy_certificate,
            ": ", coir::describe_tls(context.error())});
  return {};
}

#endif
