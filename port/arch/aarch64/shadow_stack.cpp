#include <coir/port/context.h>

namespace coir::port {

bool shadow_stack_active() noexcept {
  // chkfeat x16, written as the hint it is: clears the bit of each feature that is enabled, and is a nop on older
  // processors. Bit 0 is the guarded control stack.
  register std::uint64_t feature asm("x16") = 1;
  asm volatile("hint #40" : "+r"(feature));
  return feature == 0;
}

}  // namespace coir::port
