#include "tls/library/record_buffers.h"

#include <coir/detail/fatal.h>
#include <mbedtls/platform_util.h>

#include <new>

#include "base/spare_mappings.h"
#include "tls/library/mbedtls_internals.h"

namespace coir::tls {
namespace {

// One is always kept: idle sessions are ended in good order when there is no memory for another.
constinit SpareMappings g_spares(account::tls, RecordBuffers::kBytes, 1, 8);

}  // namespace

unsigned char* RecordBuffers::in() noexcept {
  return out() + coir_tls_out_bytes;
}

RecordBuffers* take_buffers(bool spare_only) noexcept {
  void* const memory = spare_only ? g_spares.take_spare() : g_spares.take();
  if (memory == nullptr) return nullptr;
  if (sizeof(RecordBuffers) + coir_tls_in_bytes + coir_tls_out_bytes > RecordBuffers::kBytes) {
    detail::fatal("mbedTLS's record buffers are larger than what is kept for them");
  }
  return ::new (memory) RecordBuffers;
}

void give_buffers(RecordBuffers* buffers) noexcept {
  mbedtls_platform_zeroize(buffers->out(), buffers->out_used);
  mbedtls_platform_zeroize(buffers->in(), buffers->in_used);
  g_spares.give(buffers);
}

}  // namespace coir::tls
