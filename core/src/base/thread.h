#pragma once

#include <pthread.h>
#include <signal.h>

#include <cstddef>

#include <coir/atomic.h>
#include <coir/stack_size.h>

namespace coir {

// kWorkerThreadBytes is the stack of a thread that runs a worker: what on_worker_stack promises, and the loop beneath.
inline constexpr std::size_t kWorkerThreadBytes = std::size_t{256 + 8} * 1024 * kStackInflation;

// start_thread starts a joinable thread with the given stack. The signals in `blocked` are blocked from its first
// instruction on, for threads whose stack has no room for signal handlers. Returns 0, or an errno.
int start_thread(pthread_t& thread, std::size_t stack_bytes, const sigset_t& blocked, void* (*body)(void*),
                 void* argument) noexcept;

// unseen_threads counts the runtime's own threads that can wake no fiber, such as the watchdog's: they do not keep a
// deadlock from being reported.
extern constinit SharedAtomic<unsigned> unseen_threads;

// all_but_faults is what a thread of the runtime blocks: the signals of the process go to other threads. A fault stays with
// the thread that makes it, and one that is blocked there would end the process past every handler.
sigset_t all_but_faults() noexcept;

}  // namespace coir
