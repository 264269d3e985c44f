#include <coir/port/interrupted.h>

#include <ucontext.h>

namespace coir::port {

Interrupted interrupted_at(const void* signal_context) noexcept {
  const auto& machine = static_cast<const ucontext_t*>(signal_context)->uc_mcontext;
  return {.pc = machine.pc, .stack_pointer = machine.sp, .frame_pointer = machine.regs[29]};
}

}  // namespace coir::port
