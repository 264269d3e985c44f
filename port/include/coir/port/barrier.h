#pragma once

// A memory barrier in every thread of the process, for protocols whose other side is rare.
//
//   if (prepare_barrier() && barrier_everywhere()) show("each running thread has passed a barrier");

#include <coir/port/needs_fibers.h>

namespace coir::port {

// prepare_barrier readies the process for barrier_everywhere; false where the kernel has no such barrier. Any thread.
bool prepare_barrier() noexcept;

// barrier_everywhere returns once each thread of the process that runs has passed a full memory barrier. One side of a
// protocol may then do with the order of its own program, if the other side is rare: it costs a system call and an
// interrupt of each processor that runs one of the threads, some microseconds. After prepare_barrier. False: there was no
// barrier, because a filter of system calls has come since.
[[nodiscard]] bool barrier_everywhere() noexcept;

// compiler_barrier keeps the compiler from moving loads and stores across it; the processor may.
inline void compiler_barrier() noexcept {
  asm volatile("" ::: "memory");
}

}  // namespace coir::port
