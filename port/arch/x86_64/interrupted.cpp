#include <coir/port/interrupted.h>

#include <ucontext.h>

namespace coir::port {

Interrupted interrupted_at(const void* signal_context) noexcept {
  const auto& machine = static_cast<const ucontext_t*>(signal_context)->uc_mcontext;
  return {.pc = static_cast<std::uintptr_t>(machine.gregs[REG_RIP]),
          .stack_pointer = static_cast<std::uintptr_t>(machine.gregs[REG_RSP]),
          .frame_pointer = static_cast<std::uintptr_t>(machine.gregs[REG_RBP])};
}

}  // namespace coir::port
