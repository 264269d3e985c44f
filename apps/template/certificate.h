#pragma once

#include <coir/net/tls.h>

#include <expected>

// load_certificate makes the context for HTTPS from the certificate and key in the file at `path`. Where there is no
// file, one is made first, for this machine's name, with mode 0600. Before anything is served. Errors: those of File,
// mkdir, make_self_signed and TlsContext::server.
[[nodiscard]] std::expected<coir::TlsContext, coir::Error> load_certificate(const char* path) noexcept;
