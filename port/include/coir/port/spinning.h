#pragma once

#include <coir/config.h>

namespace coir::port {

// In builds with COIR_SPIN_CHECKS each thread counts the spinlocks that it holds, and expect_no_spinlock ends the process
// with one line that names the call if there is one: a thread that goes to the kernel under a spinlock may lose its CPU
// there, and who waits for the lock burns theirs meanwhile. In other builds these are nothing.
#if COIR_SPIN_CHECKS
void begin_spinning() noexcept;
void end_spinning() noexcept;
void expect_no_spinlock(const char* call) noexcept;
#else
inline void begin_spinning() noexcept {}
inline void end_spinning() noexcept {}
inline void expect_no_spinlock(const char*) noexcept {}
#endif

}  // namespace coir::port
