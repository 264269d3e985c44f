/* How mbedTLS is compiled for coir. Two profiles: the full one, and with COIR_TLS_SMALL one for the tightest images, which
 * speaks TLS 1.3 with ECDSA and ECDHE on P-256 and AES-128-GCM, and nothing else.
 *
 * Features that are not named here are not compiled: no DTLS, renegotiation, early data, session cache, CBC, SHA-1, static RSA, files,
 * sockets, strings for errors. */
#ifndef COIR_MBEDTLS_CONFIG_H
#define COIR_MBEDTLS_CONFIG_H

#include <coir/config.h>
#include <stddef.h>

/* The platform. Memory, random numbers, the time and locks are coir's (net/src/tls/library/library.cpp). */
#define MBEDTLS_PLATFORM_C
#define MBEDTLS_PLATFORM_MEMORY
#define MBEDTLS_PLATFORM_CALLOC_MACRO coir_tls_calloc
#define MBEDTLS_PLATFORM_FREE_MACRO coir_tls_free
#define MBEDTLS_HAVE_TIME
#define MBEDTLS_HAVE_TIME_DATE
#define MBEDTLS_PLATFORM_TIME_ALT
#define MBEDTLS_HAVE_ASM
#ifdef __cplusplus
extern "C" {
#endif
void* coir_tls_calloc(size_t count, size_t size);
void coir_tls_free(void* memory);
#ifdef __cplusplus
}
#endif
#if !COIR_SINGLE_WORKER
#define MBEDTLS_THREADING_C
#define MBEDTLS_THREADING_ALT
#endif

/* Protocols and extensions. TLS 1.3 keeps its keys in PSA's store, which grows with the handshakes under way. */
#define MBEDTLS_SSL_TLS_C
#define MBEDTLS_SSL_SRV_C
#define MBEDTLS_SSL_CLI_C
#define MBEDTLS_SSL_PROTO_TLS1_3
#define MBEDTLS_SSL_TLS1_3_COMPATIBILITY_MODE
#define MBEDTLS_SSL_TLS1_3_KEY_EXCHANGE_MODE_EPHEMERAL_ENABLED
#define MBEDTLS_SSL_TLS1_3_KEY_EXCHANGE_MODE_PSK_EPHEMERAL_ENABLED
#define MBEDTLS_SSL_KEEP_PEER_CERTIFICATE
#define MBEDTLS_SSL_ALL_ALERT_MESSAGES
#define MBEDTLS_SSL_ALPN
#define MBEDTLS_SSL_SERVER_NAME_INDICATION
#define MBEDTLS_SSL_SESSION_TICKETS
#define MBEDTLS_SSL_TICKET_C
#define MBEDTLS_SSL_RECORD_SIZE_LIMIT
#define MBEDTLS_PSA_CRYPTO_C
#define MBEDTLS_PSA_CRYPTO_EXTERNAL_RNG
#define MBEDTLS_PSA_KEY_STORE_DYNAMIC

/* Record buffers. A server has no way to make every client send less than 16 KB at once; what it sends itself is its own
 * choice. VARIABLE_BUFFER_LENGTH takes the smaller of the two for granted of TLS 1.2 peers that negotiated nothing, and fails
 * their 16 KB records; coir takes the buffers away from idle sessions instead (net/src/tls/library/record_buffers.cpp). */
#define MBEDTLS_SSL_IN_CONTENT_LEN 16384
#define MBEDTLS_SSL_OUT_CONTENT_LEN 4096
#define MBEDTLS_SSL_TLS1_3_DEFAULT_NEW_SESSION_TICKETS 1

/* Cryptography. Constant tables instead of 8.7 KB computed in memory. A window of 4 bits and precomputed multiples of the
 * generator: without them a signature takes twice as long. */
#define MBEDTLS_AES_C
#define MBEDTLS_AES_ROM_TABLES
#define MBEDTLS_AES_FEWER_TABLES
#define MBEDTLS_CIPHER_C
#define MBEDTLS_GCM_C
#define MBEDTLS_HKDF_C
#define MBEDTLS_MD_C
#define MBEDTLS_SHA256_C
#define MBEDTLS_BIGNUM_C
#define MBEDTLS_ECP_C
#define MBEDTLS_ECP_DP_SECP256R1_ENABLED
#define MBEDTLS_ECP_NIST_OPTIM
#define MBEDTLS_ECP_WINDOW_SIZE 4
#define MBEDTLS_ECP_FIXED_POINT_OPTIM 1
#define MBEDTLS_ECDH_C
#define MBEDTLS_ECDSA_C
#if defined(__x86_64__)
#define MBEDTLS_AESNI_C
#elif defined(__aarch64__)
#define MBEDTLS_AESCE_C
#endif

/* Keys and certificates, read from PEM or DER; the one of the first boot is written. */
#define MBEDTLS_ASN1_PARSE_C
#define MBEDTLS_ASN1_WRITE_C
#define MBEDTLS_BASE64_C
#define MBEDTLS_OID_C
#define MBEDTLS_PEM_PARSE_C
#define MBEDTLS_PEM_WRITE_C
#define MBEDTLS_PK_C
#define MBEDTLS_PK_PARSE_C
#define MBEDTLS_PK_WRITE_C
#define MBEDTLS_X509_USE_C
#define MBEDTLS_X509_CRT_PARSE_C
#define MBEDTLS_X509_CREATE_C
#define MBEDTLS_X509_CRT_WRITE_C
#define MBEDTLS_X509_REMOVE_INFO

#if COIR_TLS_SMALL
#define MBEDTLS_AES_ONLY_128_BIT_KEY_LENGTH
#define MBEDTLS_MPI_MAX_SIZE 64
#define MBEDTLS_SSL_CIPHERSUITES MBEDTLS_TLS1_3_AES_128_GCM_SHA256
#else
#define MBEDTLS_SSL_PROTO_TLS1_2
#define MBEDTLS_SSL_EXTENDED_MASTER_SECRET
#define MBEDTLS_SSL_MAX_FRAGMENT_LENGTH
#define MBEDTLS_KEY_EXCHANGE_ECDHE_ECDSA_ENABLED
#define MBEDTLS_KEY_EXCHANGE_ECDHE_RSA_ENABLED
#define MBEDTLS_CHACHA20_C
#define MBEDTLS_POLY1305_C
#define MBEDTLS_CHACHAPOLY_C
#define MBEDTLS_SHA384_C
#define MBEDTLS_SHA512_C
#define MBEDTLS_ECP_DP_CURVE25519_ENABLED
/* Not for key exchange: public authorities sign with it. */
#define MBEDTLS_ECP_DP_SECP384R1_ENABLED
#define MBEDTLS_RSA_C
#define MBEDTLS_PKCS1_V15
#define MBEDTLS_PKCS1_V21
#define MBEDTLS_X509_RSASSA_PSS_SUPPORT
#define MBEDTLS_MPI_MAX_SIZE 512
#define MBEDTLS_SSL_CIPHERSUITES                                                                                  \
  MBEDTLS_TLS1_3_AES_128_GCM_SHA256, MBEDTLS_TLS1_3_CHACHA20_POLY1305_SHA256, MBEDTLS_TLS1_3_AES_256_GCM_SHA384,  \
      MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, MBEDTLS_TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,             \
      MBEDTLS_TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, MBEDTLS_TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, \
      MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, MBEDTLS_TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384
#endif

#endif
