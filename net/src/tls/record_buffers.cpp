#include "tls/record_buffers.h"

#include <coir/detail/fatal.h>
#include <coir/detail/intrusive_list.h>
#include <coir/port/memory.h>
#include <coir/pressure.h>
#include <coir/spinlock.h>
#include <mbedtls/platform_util.h>

#include <new>

#include "tls/mbedtls_internals.h"

namespace coir::tls {
namespace {

// One is always kept: idle sessions are ended in good order when there is no memory for another.
constexpr std::size_t kKept = 1;
constexpr std::size_t kMostSpare = 8;

class BufferPool {
 public:
  RecordBuffers* take(bool spare_only) noexcept {
    const Locked locked(lock_);
    if (count_ <= (spare_only ? 0 : kKept)) return nullptr;
    --count_;
    return spare_.pop();
  }

  // keep returns false when enough are kept.
  bool keep(RecordBuffers* buffers) noexcept {
    const Locked locked(lock_);
    if (count_ >= kMostSpare) return false;
    spare_.push(*buffers);
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
        buffers = spare_.pop();
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
  detail::IntrusiveStack<RecordBuffers> spare_;
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
  if (sizeof(RecordBuffers) + coir_tls_in_bytes + coir_tls_out_bytes > RecordBuffers::kBytes) {
    detail::fatal("mbedTLS's record buffers are larger than what is kept for them");
  }
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
