#include "tls/peer.h"

#include <mbedtls/asn1.h>
#include <mbedtls/oid.h>
#include <mbedtls/sha256.h>
#include <string.h>

namespace coir::tls {

TlsPeer* remembered(const mbedtls_x509_crt& certificate) noexcept {
  auto* const peer = static_cast<TlsPeer*>(coir_tls_calloc(1, sizeof(TlsPeer)));
  if (peer == nullptr) return nullptr;
  mbedtls_sha256(certificate.raw.p, certificate.raw.len, peer->fingerprint, 0);
  for (const mbedtls_x509_name* each = &certificate.subject; each != nullptr; each = each->next) {
    if (MBEDTLS_OID_CMP(MBEDTLS_OID_AT_CN, &each->oid) != 0) continue;
    // A name cut short, by its length or by a NUL inside, would be another name.
    if (each->val.len < sizeof peer->common_name && memchr(each->val.p, 0, each->val.len) == nullptr)
      memcpy(peer->common_name, each->val.p, each->val.len);
    break;
  }
  return peer;
}

}  // namespace coir::tls
