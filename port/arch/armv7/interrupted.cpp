#include <coir/port/cpu.h>
#include <coir/port/interrupted.h>

#include <ucontext.h>

namespace coir::port {

Interrupted interrupted_at(const void* signal_context) noexcept {
  const auto& machine = static_cast<const ucontext_t*>(signal_context)->uc_mcontext;
  return {.pc = machine.arm_pc,
          .stack_pointer = machine.arm_sp,
          .frame_pointer = kFramePointerRegister == 7 ? machine.arm_r7 : machine.arm_fp};
}

}  // namespace coir::port
