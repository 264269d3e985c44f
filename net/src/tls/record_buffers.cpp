#include "tls/record_buffers.h"

#include <coir/port/memory.h>
#include <coir/pressure.h>
#include <coir/spinlock.h>
#include <mbedtls/platform_util.h>

#include <new>

#include "tls/mbedtls_internals.h"

namespace coir::tls {
namespace {

// One stays for ending idle sessions in good order, which happens when there is no memory for another.
constexpr std::size_t kKept = 1;
constexpr std::size_t kMostSpare = 8;

class BufferPool {
 public:
  RecordBuffers* take(bool spare_only) noexcept {
    const Locked locked(lock_);
    RecordBuffers* const buffers = spare_;
    if (buffers == nullptr || (!spare_only && count_ <= kKept)) return nullptr;
    spare_ = buffers->next;
    --count_;
    return buffers;
  }

  // keep says no where there are enough.
  bool keep(RecordBuffers* buffers) noexcept {
    const Locked locked(lock_);
    if (count_ >= kMostSpare) return false;
    buffers->next = spare_;
    spare_ = buffers;
    ++count_;
    return true;
  }

  std::size_t give(std::size_t wanted) noexcept {
    std::size_t freed = 0;
    while (freed < wanted) {
      RecordBuffers* buffers;
      {
        const Locked locked(lock_);
        if (count_ <= kKept) break;
        buffers = spare_;
        spare_ = buffers->next;
        --count_;
      }
      port::release(buffers, RecordBuffers::kBytes);
      account::tls.refund(RecordBuffers::kBytes);
      freed += RecordBuffers::kBytes;
    }
    return freed;
  }

  // The pool lives as long as the process, and so does its relief.
  void begin() noexcept {
    {
      const Locked locked(lock_);
      if (begun_) return;
      begun_ = true;
    }
    Pressure::add(relief_);
  }

 private:
  Spinlock lock_;
  RecordBuffers* spare_ = nullptr;
  std::size_t count_ = 0;
  bool begun_ = false;
  Relief relief_{Pressure::caches,
                 [](void* self, std::size_t wanted) noexcept { return static_cast<BufferPool*>(self)->give(wanted); },
                 this};
};

constinit BufferPool g_pool;

}  // namespace

unsigned char* RecordBuffers::in() noexcept {
  return out() + coir_tls_out_bytes;
}

RecordBuffers* take_buffers(bool spare_only) noexcept {
  if (RecordBuffers* const buffers = g_pool.take(spare_only); buffers != nullptr || spare_only) return buffers;
  g_pool.begin();
  if (!Pressure::charge(account::tls, RecordBuffers::kBytes)) return nullptr;
  void* const memory = port::reserve(RecordBuffers::kBytes);
  if (memory == nullptr) {
    account::tls.refund(RecordBuffers::kBytes);
    return nullptr;
  }
  auto* const buffers = ::new (memory) RecordBuffers;
  if (sizeof(RecordBuffers) + coir_tls_in_bytes + coir_tls_out_bytes > RecordBuffers::kBytes) __builtin_trap();
  return buffers;
}

void give_buffers(RecordBuffers* buffers) noexcept {
  mbedtls_platform_zeroize(buffers->out(), buffers->out_used);
  mbedtls_platform_zeroize(buffers->in(), buffers->in_used);
  buffers->in_used = buffers->out_used = 0;
  if (g_pool.keep(buffers)) return;
  port::release(buffers, RecordBuffers::kBytes);
  account::tls.refund(RecordBuffers::kBytes);
}

}  // namespace coir::tls
