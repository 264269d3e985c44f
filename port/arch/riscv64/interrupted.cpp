#include <coir/port/interrupted.h>

#include <ucontext.h>

namespace coir::port {

Interrupted interrupted_at(const void* signal_context) noexcept {
  const auto& machine = static_cast<const ucontext_t*>(signal_context)->uc_mcontext;
  return {.pc = machine.__gregs[0], .stack_pointer = machine.__gregs[2], .frame_pointer = machine.__gregs[8]};
}

}  // namespace coir::port
