/* Included before ssl_tls13_generic.c. By TLS 1.3 mbedTLS 3.6.6 tells a client that shows no certificate where one is wanted
 * no_certificate, an alert of SSL 3.0 that TLS 1.3 reserves. RFC 8446, 4.4.2.4, wants certificate_required, and of a client
 * that is shown none decode_error. Both places have the session at hand as `ssl`. */
#include "common.h"

#include "ssl_misc.h"

#undef MBEDTLS_SSL_ALERT_MSG_NO_CERT
#define MBEDTLS_SSL_ALERT_MSG_NO_CERT                                                 \
  (ssl->conf->endpoint == MBEDTLS_SSL_IS_SERVER ? MBEDTLS_SSL_ALERT_MSG_CERT_REQUIRED \
                                                : MBEDTLS_SSL_ALERT_MSG_DECODE_ERROR)
