#pragma once

#include <cstddef>

#include <coir/config.h>

#if COIR_ASAN
#include <pthread.h>
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#elif COIR_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace coir {

// SanitizerContext tells ASan and TSan which stack runs. In other builds every function is empty.
//
//   before_switch(from, to)   on the old stack, right before the switch
//   after_switch(to)          on the new stack, right after it
//
// A fiber that ends passes `from` = nullptr, so that ASan frees its fake stack.
class SanitizerContext {
 public:
  // thread_stack describes the stack that the calling thread runs on; fiber_stack a fresh fiber's.
  void thread_stack() noexcept {
#if COIR_ASAN
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
      void* low = nullptr;
      pthread_attr_getstack(&attributes, &low, &bytes_);
      low_ = low;
      pthread_attr_destroy(&attributes);
    }
#elif COIR_TSAN
    tsan_ = __tsan_get_current_fiber();
#endif
  }
  void fiber_stack([[maybe_unused]] void* low, [[maybe_unused]] std::size_t bytes) noexcept {
#if COIR_ASAN
    low_ = low;
    bytes_ = bytes;
    fake_ = nullptr;
    __asan_unpoison_memory_region(low, bytes);
#elif COIR_TSAN
    tsan_ = __tsan_create_fiber(0);
#endif
  }
  void ended() noexcept {
#if COIR_TSAN
    __tsan_destroy_fiber(tsan_);
#endif
  }

  // Inlined into every caller: an instrumented function that begins on one stack and ends on another would leave TSan
  // with one call too many on the first and one too few on the second.
  [[gnu::always_inline]] static void before_switch([[maybe_unused]] SanitizerContext* from,
                                                   [[maybe_unused]] SanitizerContext& to) noexcept {
#if COIR_ASAN
    __sanitizer_start_switch_fiber(from != nullptr ? &from->fake_ : nullptr, to.low_, to.bytes_);
#elif COIR_TSAN
    __tsan_switch_to_fiber(to.tsan_, 0);  // one thread runs both: everything before the switch happened before
#endif
  }

  [[gnu::always_inline]] static void after_switch([[maybe_unused]] SanitizerContext& self) noexcept {
#if COIR_ASAN
    __sanitizer_finish_switch_fiber(self.fake_, nullptr, nullptr);
#endif
  }

 private:
#if COIR_ASAN
  const void* low_ = nullptr;
  std::size_t bytes_ = 0;
  void* fake_ = nullptr;
#elif COIR_TSAN
  void* tsan_ = nullptr;
#endif
};

}  // namespace coir
