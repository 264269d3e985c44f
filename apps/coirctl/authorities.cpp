#include "authorities.h"

#include <coir/file.h>

#include "fetch_options.h"

#if COIR_TLS

namespace {

constinit coir::Account g_files("files");  // what is held of certificates
constexpr std::size_t kMostAuthorities = 1024 * 1024;

}  // namespace

bool trust_file(const char* path, coir::http::ClientOptions& policy) noexcept {
  const auto bytes = coir::slurp(path, g_files, kMostAuthorities);
  auto context = bytes ? coir::TlsContext::client({.authorities = bytes->text()}) : std::unexpected(bytes.error());
  if (!context) {
    say_error(path, coir::describe(context.error()));
    return false;
  }
  policy.tls = *std::move(context);
  return true;
}

#else

bool trust_file(const char* path, coir::http::ClientOptions&) noexcept {
  say_error(path, "this build has no TLS");
  return false;
}

#endif
