#include <coir/port/interrupted.h>

#include <ucontext.h>

namespace coir::port {

Interrupted interrupted_at(const void* signal_context) noexcept {
  const auto& machine = static_cast<const ucontext_t*>(signal_context)->uc_mcontext;
#if defined(__x86_64__)
  return {.pc = static_cast<std::uintptr_t>(machine.gregs[REG_RIP]),
          .stack_pointer = static_cast<std::uintptr_t>(machine.gregs[REG_RSP]),
          .frame_pointer = static_cast<std::uintptr_t>(machine.gregs[REG_RBP])};
#elif defined(__riscv)
  return {.pc = machine.__gregs[0], .stack_pointer = machine.__gregs[2], .frame_pointer = machine.__gregs[8]};
#elif defined(__aarch64__)
  return {.pc = machine.pc, .stack_pointer = machine.sp, .frame_pointer = machine.regs[29]};
#endif
}

}  // namespace coir::port
