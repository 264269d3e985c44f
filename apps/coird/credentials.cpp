#include "credentials.h"

#if defined(COIR_TLS) && COIR_TLS

#include <coir/file.h>
#include <coir/net/self_signed.h>
#include <coir/worker_stack.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

#include "complaint.h"

namespace {

constexpr std::size_t kMostBytes = 256 * 1024;
constexpr const char* kMadeName = "/self-signed.pem";
constexpr const char* kProtocols[] = {"http/1.1"};

// said is complain from a fiber too, whose stack printf may not have.
bool said(const char* cure, const char* path, const char* what) noexcept {
  return coir::on_worker_stack([&] { return complain(cure, "%s: %s", path, what); });
}

bool read(const char* path, coir::FileBytes& into, const char* cure) noexcept {
  auto file = coir::File::open(path);
  if (!file) return said(cure, path, describe(file.error()));
  auto bytes = file->read_all(coir::account::process, kMostBytes);
  if (!bytes) return said(cure, path, describe(bytes.error()));
  into = std::move(*bytes);
  return true;
}

// Secret wipes what it has read, on whatever path it goes.
struct Secret {
  ~Secret() {
    if (bytes.size() != 0) explicit_bzero(const_cast<char*>(bytes.bytes().data()), bytes.size());
  }
  coir::FileBytes bytes;
};

// close_mode sees to it that nobody but its owner can read a key that coird has made, and tells. False: that cannot be
// mended.
bool close_mode(const char* path, const char* cure) noexcept {
  struct stat status;
  if (::stat(path, &status) != 0 || (status.st_mode & 077) == 0) return true;
  if (::chmod(path, 0600) != 0) return said(cure, path, "others can read the key, and its mode cannot be changed");
  said("it may be known; remove the file to have another made", path,
       "others could read the key: its mode is 0600 now");
  return true;
}

// make writes a new key and certificate for this machine into `path`, readable for its owner only.
[[gnu::noinline]] bool make(const char* path, const char* cure) noexcept {
  char host[64] = "localhost";
  if (::gethostname(host, sizeof host - 1) != 0 || host[0] == '\0') strcpy(host, "localhost");
  const std::string_view names[] = {host, "localhost", "127.0.0.1", "::1"};
  coir::SelfSigned made;
  if (auto done = coir::make_self_signed(names, made); !done)
    return complain(cure, "%s: cannot make a certificate: %s", path, describe(done.error()));
  char text[sizeof made];
  const int size = snprintf(text, sizeof text, "%s%s", made.certificate, made.key);
  const mode_t before = ::umask(077);
  const auto written = coir::replace_file(path, std::span<const char>(text, static_cast<std::size_t>(size)));
  ::umask(before);
  explicit_bzero(text, sizeof text);
  explicit_bzero(&made, sizeof made);
  if (!written) return complain(cure, "%s: cannot store the certificate: %s", path, describe(written.error()));
  fprintf(stderr, "coird: made a certificate for %s: %s\n", host, path);
  return true;
}

coir::TlsContext use_made(const Options& options, bool at_start, const char* cure) noexcept {
  char path[256];
  if (snprintf(path, sizeof path, "%s%s", options.state, kMadeName) >= static_cast<int>(sizeof path)) {
    complain(cure, "--state '%s': too long", options.state);
    return {};
  }
  if (at_start && ::access(path, F_OK) != 0 && errno == ENOENT) {
    if (::mkdir(options.state, 0755) != 0 && errno != EEXIST) {
      complain(cure, "--state %s: %s", options.state, strerror(errno));
      return {};
    }
    if (!make(path, cure)) return {};
  }
  Secret secret;
  coir::FileBytes& pem = secret.bytes;
  if (!close_mode(path, cure) || !read(path, pem, cure)) return {};
  const coir::TlsCertificate certificates[] = {{.chain = pem.text(), .key = pem.text()}};
  auto context = coir::TlsContext::server({.certificates = certificates, .protocols = kProtocols});
  char shown[coir::kFingerprintBytes];
  const bool known = at_start && coir::fingerprint(pem.text(), shown);
  if (!context) {
    said(cure, path, context.error().what);
    return {};
  }
  if (known) fprintf(stderr, "coird: certificate SHA-256 %s\n", shown);
  return std::move(*context);
}

}  // namespace

coir::TlsContext load_credentials(const Options& options, bool at_start, const char* cure) noexcept {
  if (options.certificate_count == 0) return use_made(options, at_start, cure);
  // A certificate and its key may be one file.
  Secret chains[Options::kMaxCertificates], keys[Options::kMaxCertificates];
  coir::FileBytes authorities;
  coir::TlsCertificate certificates[Options::kMaxCertificates];
  for (std::size_t i = 0; i < options.certificate_count; ++i) {
    if (!read(options.certificates[i], chains[i].bytes, cure) || !read(options.keys[i], keys[i].bytes, cure)) return {};
    certificates[i] = {.chain = chains[i].bytes.text(), .key = keys[i].bytes.text()};
  }
  if (options.client_authorities != nullptr && !read(options.client_authorities, authorities, cure)) return {};
  coir::TlsContext::Server wishes{.certificates = std::span(certificates, options.certificate_count),
                                  .protocols = kProtocols};
  if (options.client_authorities != nullptr) wishes.client_authorities = authorities.text();
  auto context = coir::TlsContext::server(wishes);
  if (context) return std::move(*context);
  const coir::TlsFault& fault = context.error();
  const char* at_fault = options.certificates[fault.certificate];
  if (fault.input == coir::TlsFault::Input::key) at_fault = options.keys[fault.certificate];
  if (fault.input == coir::TlsFault::Input::authorities) at_fault = options.client_authorities;
  said(cure, at_fault, fault.what);
  return {};
}

#endif
