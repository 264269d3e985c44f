#include <errno.h>

// The C library's errno: coir/errno.h is not included, for it would name the function that is defined here.
extern "C" int* coir_errno(void);

// Not inlined, and with something in it that the compiler does not see through: else it would find out by itself that
// the function has no effects, and take two calls for one again.
extern "C" [[gnu::noinline]] int* coir_errno(void) {
  asm volatile("" ::: "memory");
  return &errno;
}
