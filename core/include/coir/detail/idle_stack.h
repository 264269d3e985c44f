#pragma once

#include <coir/port/needs_fibers.h>

namespace coir::detail {

// give_back_idle_stack returns the pages of the caller's stack that lie below its frame to the kernel: earlier calls that went
// deeper have left them resident. For a fiber that is about to wait for long. A system call; nothing on a plain thread, and in
// builds that look at what is below (sanitizers, COIR_PAINT).
void give_back_idle_stack() noexcept;

}  // namespace coir::detail
