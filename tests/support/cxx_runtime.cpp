// The few functions of a C++ runtime library that the test framework calls. Shipped programs need none of them: this
// file is linked into tests only.

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cstddef>
#include <new>

#include <coir/config.h>

void* operator new(std::size_t size) {
  if (void* memory = malloc(size != 0 ? size : 1)) return memory;
  abort();
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto align = static_cast<std::size_t>(alignment);
  if (void* memory = aligned_alloc(align, (size + align - 1) / align * align)) return memory;
  abort();
}
void* operator new[](std::size_t size) {
  return ::operator new(size);
}
void operator delete(void* memory) noexcept {
  free(memory);
}
void operator delete[](void* memory) noexcept {
  free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  free(memory);
}

void operator delete(void* memory, std::align_val_t) noexcept {
  free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  free(memory);
}

extern "C" void __cxa_pure_virtual() {
  fputs("a pure virtual function was called\n", stderr);
  abort();
}

#if COIR_ASAN
// AddressSanitizer keeps a fake stack for each fiber, to find uses of frames that have returned. The smallest size halves the
// page faults. Frames that do not fit are on the real stack.
#pragma clang diagnostic ignored "-Wreserved-identifier"
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
  return "max_uar_stack_size_log=16";
}
#endif
