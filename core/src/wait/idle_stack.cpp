#include <coir/detail/idle_stack.h>

#include <coir/config.h>
#include <coir/port/memory.h>
#include <coir/stack_size.h>

#include <cstdint>

#include "fiber/stack_pool.h"
#include "wait/park.h"

namespace coir::detail {

[[gnu::noinline]] void give_back_idle_stack() noexcept {
#if !COIR_ASAN && !COIR_TSAN && !defined(COIR_PAINT)
  FiberControl* const self = running_fiber();
  if (self == nullptr) return;
  // The frames of this call and of those below it.
  constexpr std::uintptr_t kOwn = 512;
  char* const low = StackArena::low_end(self, nominal_stack_bytes(self->stack_class));
  const std::uintptr_t used = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) - kOwn;
  const std::uintptr_t end = used & ~std::uintptr_t{port::kPageBytes - 1};
  const auto begin = reinterpret_cast<std::uintptr_t>(low);
  // A kernel that refuses leaves them resident.
  if (begin < end) static_cast<void>(port::give_back(low, end - begin));
#endif
}

}  // namespace coir::detail
