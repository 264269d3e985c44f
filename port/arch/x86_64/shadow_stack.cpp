#include <coir/port/context.h>

namespace coir::port {

bool shadow_stack_active() noexcept {
  // rdsspq leaves its register alone where there is no shadow stack, on older processors because it is a nop there.
  std::uint64_t shadow_sp = 0;
  asm volatile("rdsspq %0" : "+r"(shadow_sp));
  return shadow_sp != 0;
}

}  // namespace coir::port
