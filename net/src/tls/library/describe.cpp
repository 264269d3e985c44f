#include <coir/tls.h>
#include <mbedtls/ssl.h>
#include <mbedtls/x509.h>

#include "tls/library/flaw.h"
#include "tls/library/library.h"

namespace coir::tls {
namespace {

const char* phrase_of_alert(int number) noexcept {
  switch (number) {
    case MBEDTLS_SSL_ALERT_MSG_UNEXPECTED_MESSAGE:
      return "refused by the peer: unexpected message";
    case MBEDTLS_SSL_ALERT_MSG_BAD_RECORD_MAC:
      return "refused by the peer: bad record";
    case MBEDTLS_SSL_ALERT_MSG_RECORD_OVERFLOW:
      return "refused by the peer: record too large";
    case MBEDTLS_SSL_ALERT_MSG_HANDSHAKE_FAILURE:
      return "refused by the peer: nothing in common";
    case MBEDTLS_SSL_ALERT_MSG_BAD_CERT:
    case MBEDTLS_SSL_ALERT_MSG_UNSUPPORTED_CERT:
    case MBEDTLS_SSL_ALERT_MSG_CERT_UNKNOWN:
      return "refused by the peer: bad certificate";
    case MBEDTLS_SSL_ALERT_MSG_CERT_REVOKED:
      return "refused by the peer: certificate revoked";
    case MBEDTLS_SSL_ALERT_MSG_CERT_EXPIRED:
      return "refused by the peer: certificate expired";
    case MBEDTLS_SSL_ALERT_MSG_CERT_REQUIRED:
      return "refused by the peer: a certificate is required";
    case MBEDTLS_SSL_ALERT_MSG_UNKNOWN_CA:
      return "refused by the peer: unknown authority";
    case MBEDTLS_SSL_ALERT_MSG_ACCESS_DENIED:
      return "refused by the peer: access denied";
    case MBEDTLS_SSL_ALERT_MSG_ILLEGAL_PARAMETER:
    case MBEDTLS_SSL_ALERT_MSG_DECODE_ERROR:
    case MBEDTLS_SSL_ALERT_MSG_DECRYPT_ERROR:
      return "refused by the peer: message not understood";
    case MBEDTLS_SSL_ALERT_MSG_PROTOCOL_VERSION:
      return "refused by the peer: protocol version";
    case MBEDTLS_SSL_ALERT_MSG_INSUFFICIENT_SECURITY:
      return "refused by the peer: insufficient security";
    case MBEDTLS_SSL_ALERT_MSG_INTERNAL_ERROR:
      return "refused by the peer: its internal error";
    case MBEDTLS_SSL_ALERT_MSG_USER_CANCELED:
      return "refused by the peer: cancelled by its user";
    case MBEDTLS_SSL_ALERT_MSG_UNRECOGNIZED_NAME:
      return "refused by the peer: unknown name";
    case MBEDTLS_SSL_ALERT_MSG_NO_APPLICATION_PROTOCOL:
      return "refused by the peer: no common application protocol";
    default:
      return nullptr;
  }
}

const char* phrase_of_distrust(unsigned flags) noexcept {
  if (flags == ~0u) return "certificate that cannot be read";
  // By TLS 1.2 mbedTLS skips a certificate that it cannot read, and finds fault with every part of an empty one.
  if (flags & MBEDTLS_X509_BADCERT_BAD_PK) return "certificate too weak";
  if (flags & MBEDTLS_X509_BADCERT_EXPIRED) {
    return time_valid() ? "certificate expired" : "certificate expired, and the clock is not set";
  }
  if (flags & MBEDTLS_X509_BADCERT_FUTURE) return "certificate not valid yet";
  if (flags & MBEDTLS_X509_BADCERT_CN_MISMATCH) return "certificate for another name";
  if (flags & MBEDTLS_X509_BADCERT_MISSING) return "no certificate shown";
  if (flags & MBEDTLS_X509_BADCERT_NOT_TRUSTED) return "certificate of an unknown authority";
  if (flags & (MBEDTLS_X509_BADCERT_BAD_KEY | MBEDTLS_X509_BADCERT_BAD_MD)) {
    return "certificate too weak";
  }
  if (flags & (MBEDTLS_X509_BADCERT_KEY_USAGE | MBEDTLS_X509_BADCERT_EXT_KEY_USAGE)) {
    return "certificate for another use";
  }
  if (flags & MBEDTLS_X509_BADCERT_OTHER) return "certificate with a key that is not pinned";
  return nullptr;
}

}  // namespace

const char* phrase_of(Error error) noexcept {
  if (error == ErrorCode::alert) return phrase_of_alert(error.sys);
  if (error == ErrorCode::untrusted) return phrase_of_distrust(static_cast<unsigned>(error.sys));
  return phrase_of_flaw(error);
}

}  // namespace coir::tls
