#pragma once

// Finds calls to the kernel under a spinlock, in builds with COIR_SPIN_CHECKS.
//
//   begin_spinning();
//   ...
//   end_spinning();
//   expect_no_spinlock("read");       // ends the process if the thread holds one

#include <coir/config.h>

namespace coir::port {

// In builds with COIR_SPIN_CHECKS each thread counts the spinlocks that it holds. If it holds one and the environment has
// COIR_SPIN_CHECKS, expect_no_spinlock ends the process with one line that names the call: a thread that goes to the kernel
// under a spinlock may lose its CPU there, and other threads that want the lock spin meanwhile. All unit tests
// run so. In other builds these functions are empty.
#if COIR_SPIN_CHECKS
void begin_spinning() noexcept;
void end_spinning() noexcept;
void expect_no_spinlock(const char* call) noexcept;
// A signal handler may hold none itself: it puts those of the thread that it interrupts aside, and back at its end.
int put_spinlocks_aside() noexcept;
void put_spinlocks_back(int held) noexcept;
#else
inline void begin_spinning() noexcept {}
inline void end_spinning() noexcept {}
inline void expect_no_spinlock(const char*) noexcept {}
inline int put_spinlocks_aside() noexcept {
  return 0;
}
inline void put_spinlocks_back(int) noexcept {}
#endif

}  // namespace coir::port
