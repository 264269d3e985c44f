#include "tls/library/library.h"

#include <errno.h>
#include <mbedtls/error.h>
#include <mbedtls/pk.h>
#include <mbedtls/platform.h>
#include <mbedtls/platform_time.h>
#include <mbedtls/psa_util.h>
#include <mbedtls/ssl.h>
#include <mbedtls/threading.h>
#include <mbedtls/x509.h>
#include <psa/crypto.h>
#include <sys/random.h>
#include <time.h>

#include <new>

#include "tls/library/thread_mutex.h"
#include "tls/library/trusted_time.h"

namespace coir::tls {
namespace {

constinit ThreadMutex g_starting;
constinit Atomic<bool> g_started{false};

#if defined(MBEDTLS_THREADING_ALT)
static_assert(sizeof(mbedtls_threading_mutex_t) == sizeof(ThreadMutex));

void init_mutex(mbedtls_threading_mutex_t* mutex) {
  ::new (mutex) ThreadMutex;
}
void free_mutex(mbedtls_threading_mutex_t*) {}
int lock_mutex(mbedtls_threading_mutex_t* mutex) {
  reinterpret_cast<ThreadMutex*>(mutex)->lock();
  return 0;
}
int unlock_mutex(mbedtls_threading_mutex_t* mutex) {
  reinterpret_cast<ThreadMutex*>(mutex)->unlock();
  return 0;
}
#endif

}  // namespace

static bool fill(unsigned char* into, std::size_t bytes) noexcept {
  while (bytes > 0) {
    const ssize_t got = ::getrandom(into, bytes, 0);
    if (got < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    into += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

int random(void*, unsigned char* into, std::size_t bytes) noexcept {
  return fill(into, bytes) ? 0 : MBEDTLS_ERR_ERROR_GENERIC_ERROR;
}

std::expected<void, Error> start_library() noexcept {
  // acquire pairs with the release below: what psa_crypto_init wrote is there.
  if (g_started.load(std::memory_order_acquire)) return {};
  const Holding held(g_starting);
  if (g_started.load(std::memory_order_relaxed)) return {};
  detail::add_phrase(phrase_of);
#if defined(MBEDTLS_THREADING_ALT)
  mbedtls_threading_set_alt(init_mutex, free_mutex, lock_mutex, unlock_mutex);
#endif
  mbedtls_platform_set_time([](mbedtls_time_t* into) {
    const mbedtls_time_t now = trusted_time().seconds;
    if (into != nullptr) *into = now;
    return now;
  });
  if (psa_crypto_init() != PSA_SUCCESS) return std::unexpected(Error{ErrorCode::no_memory});
  g_started.store(true, std::memory_order_release);
  return {};
}

Error error_of(int code) noexcept {
  switch (code) {
    case MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY:
      return {ErrorCode::end_of_stream};
    case MBEDTLS_ERR_SSL_CONN_EOF:
      return {ErrorCode::truncated};
    case MBEDTLS_ERR_SSL_ALLOC_FAILED:
    case MBEDTLS_ERR_X509_ALLOC_FAILED:
    case MBEDTLS_ERR_PK_ALLOC_FAILED:
    case MBEDTLS_ERR_MPI_ALLOC_FAILED:
    case MBEDTLS_ERR_ECP_ALLOC_FAILED:
    case MBEDTLS_ERR_ASN1_ALLOC_FAILED:
    case MBEDTLS_ERR_CIPHER_ALLOC_FAILED:
    case MBEDTLS_ERR_MD_ALLOC_FAILED:
    case PSA_ERROR_INSUFFICIENT_MEMORY:
      return {ErrorCode::no_memory};
    case MBEDTLS_ERR_X509_CERT_VERIFY_FAILED:
      return {ErrorCode::untrusted};
    default:
      return {ErrorCode::protocol, code};
  }
}

}  // namespace coir::tls

extern "C" psa_status_t mbedtls_psa_external_get_random(mbedtls_psa_external_random_context_t*, uint8_t* into,
                                                        size_t bytes, size_t* got) {
  if (!coir::tls::fill(into, bytes)) return PSA_ERROR_INSUFFICIENT_ENTROPY;
  *got = bytes;
  return PSA_SUCCESS;
}
