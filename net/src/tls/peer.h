#pragma once

#include <coir/tls.h>
#include <mbedtls/x509_crt.h>

namespace coir::tls {

// remembered is a TlsPeer of the certificate, in memory of mbedTLS's allocator; null if there is none. On the worker's
// stack.
TlsPeer* remembered(const mbedtls_x509_crt& certificate) noexcept;

}  // namespace coir::tls
