#pragma once

#include <coir/tls.h>

#include <expected>

namespace coir {

// load_certificate_file makes a server's context from the certificate and the key in a file. If there is no file, one is
// made first, for this machine's name, with mode 0600. Before anything is served. Errors: those of File, mkdir,
// make_self_signed and TlsContext::server.
[[nodiscard]] std::expected<TlsContext, Error> load_certificate_file(const char* path) noexcept;

}  // namespace coir
