#pragma once

#include <pthread.h>
#include <signal.h>

#include <cstddef>

#include <coir/atomic.h>

namespace coir {

// start_thread starts a joinable thread with so much stack, which has `blocked` blocked from its first instruction on:
// signals are for the threads that have room for their handlers. Returns 0, or an errno.
int start_thread(pthread_t& thread, std::size_t stack_bytes, const sigset_t& blocked, void* (*body)(void*),
                 void* argument) noexcept;

// unseen_threads counts the runtime's own threads that bring no fiber anything, as the watchdog's: a deadlock is one
// though they live.
extern constinit SharedAtomic<unsigned> unseen_threads;

// all_signals is every signal there is, as a set.
sigset_t all_signals() noexcept;

}  // namespace coir
