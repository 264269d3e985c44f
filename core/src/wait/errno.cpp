#include <errno.h>

// The C library's errno: coir/errno.h is not included, for it would name the function that is defined here.
extern "C" int* coir_errno(void);

// Not inlined, and opaque to the compiler: otherwise it would deduce that the function has no effects, and merge two
// calls into one.
extern "C" [[gnu::noinline]] int* coir_errno(void) {
  asm volatile("" ::: "memory");
  return &errno;
}
