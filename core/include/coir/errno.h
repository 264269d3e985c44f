#pragma once

// This header makes errno safe in functions that wait. The C libraries declare the function behind errno `const`: the
// compiler then takes the address once for a whole function, and after a wait, which may end on another thread, reads
// and writes the errno of the thread before. coir/error.h includes this header, and with it all that can wait: in such
// a file errno is looked up for the calling thread at each use. A wait does not preserve its value.
//
//   if (read(fd, buffer, sizeof buffer) < 0 && errno == EAGAIN) {
//     if (auto ready = coir::wait(fd, Direction::readable); !ready) return complain(ready.error());
//     if (read(fd, buffer, sizeof buffer) < 0) return complain(Error::from_errno(errno));
//   }
//
// Include it where a file waits only through other functions of the program and includes no header of coir.
//
// The same holds for your own thread-local variables: no function may use one both before and after a call that waits.
// Reach it through a function that is not inlined and that the compiler cannot merge two calls of:
//
//   thread_local int t_depth = 0;
//   [[gnu::noinline]] int& depth() { asm volatile(""); return t_depth; }   // no reference is kept across a wait
//
// And for the C library's other thread-local state: h_errno, pthread_self(), the locale of uselocale. State of a fiber
// belongs into its local variables. A build with one worker needs none of this: its fibers share one thread.

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
