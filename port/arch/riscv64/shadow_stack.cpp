#include <coir/port/context.h>
#include <sys/prctl.h>

namespace coir::port {

bool shadow_stack_active() noexcept {
  // ssrdp traps on processors without may-be-operations, so the kernel is asked; one that knows no shadow stacks
  // answers EINVAL. The numbers are the kernel's, for C libraries older than them.
  constexpr int kGetShadowStackStatus = 74;        // PR_GET_SHADOW_STACK_STATUS
  constexpr unsigned long kShadowStackEnable = 1;  // PR_SHADOW_STACK_ENABLE
  unsigned long status = 0;
  return prctl(kGetShadowStackStatus, &status, 0UL, 0UL, 0UL) == 0 && (status & kShadowStackEnable) != 0;
}

}  // namespace coir::port
