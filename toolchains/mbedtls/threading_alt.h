/* mbedTLS's mutex is coir's: net/src/tls/library/thread_mutex.h. */
#ifndef COIR_MBEDTLS_THREADING_ALT_H
#define COIR_MBEDTLS_THREADING_ALT_H

typedef struct mbedtls_threading_mutex_t {
  unsigned int word;
} mbedtls_threading_mutex_t;

#endif
