#pragma once

// errno, as code that waits may use it. The C libraries declare the function behind errno `const`: the compiler then
// takes the address once for a whole function, and after a wait, which may end on another thread, reads and writes the
// errno of the thread before. coir/error.h includes this header, and with it all that can wait: there errno is the
// calling thread's at each use. A wait does not preserve its value.
//
//   if (read(fd, into, size) < 0 && errno == EAGAIN) {
//     if (auto ready = coir::wait(fd, coir::Direction::readable); !ready) return std::unexpected(ready.error());
//     if (read(fd, into, size) < 0) return std::unexpected(Error::from_errno(errno));   // of the thread it runs on now
//   }
//
// A file that waits only through functions of its program, and includes no header of coir, includes this one.
//
// A thread-local variable of your own is subject to the same: no function may use it both before and after a call that
// waits. Reach it through a function that is not inlined and that the compiler cannot merge two calls of:
//
//   thread_local int t_depth = 0;
//   [[gnu::noinline]] int& depth() { asm volatile(""); return t_depth; }   // no reference is kept across a wait
//
// So is whatever else the C library keeps for each thread: h_errno, pthread_self(), the locale of uselocale. What
// belongs to a fiber is a local variable of it. A build with one worker has none of this: its fibers share one thread.

#include <errno.h>

#include <coir/config.h>

#if !COIR_SINGLE_WORKER

#ifdef __cplusplus
extern "C" {
#endif
// coir_errno is the address of the calling thread's errno. Not `const`; any context, a signal handler too.
int* coir_errno(void);
#ifdef __cplusplus
}
#endif

#undef errno
#define errno (*coir_errno())

#endif
