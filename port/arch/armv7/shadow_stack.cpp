#include <coir/port/context.h>

namespace coir::port {

bool shadow_stack_active() noexcept {
  return false;  // armv7 has none
}

}  // namespace coir::port
