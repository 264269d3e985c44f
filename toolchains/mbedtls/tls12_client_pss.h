/* Included before ssl_tls12_client.c. The client of 3.6.6 offers rsa_pss_rsae_* and then refuses the TLS 1.2 server that
 * takes it at its word, as OpenSSL's does with an RSA certificate (Mbed-TLS/mbedtls issue 10668; mended upstream by pull
 * request 10674, for the release after it). The check of what TLS 1.2 knows is all that stands in the way: the signature
 * is verified as PSS further on, and that it was offered is checked besides. */
#include "common.h"

#include "ssl_misc.h"

#if defined(MBEDTLS_SSL_PROTO_TLS1_2) && defined(MBEDTLS_X509_RSASSA_PSS_SUPPORT)
static inline int coir_sig_alg_is_supported(const mbedtls_ssl_context* ssl, uint16_t sig_alg) {
  switch (sig_alg) {
    case MBEDTLS_TLS1_3_SIG_RSA_PSS_RSAE_SHA256:
    case MBEDTLS_TLS1_3_SIG_RSA_PSS_RSAE_SHA384:
    case MBEDTLS_TLS1_3_SIG_RSA_PSS_RSAE_SHA512:
      return 1;
    default:
      return mbedtls_ssl_sig_alg_is_supported(ssl, sig_alg);
  }
}
#define mbedtls_ssl_sig_alg_is_supported coir_sig_alg_is_supported
#endif
