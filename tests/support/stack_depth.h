#pragma once

#include <CppUTest/TestHarness.h>
#include <pthread.h>
#include <string.h>

#include <cstddef>
#include <cstdint>

namespace coir::test {

alignas(4096) inline char g_deep_stack[64 * 1024];

// measure_depth calls `line` on a fresh stack and tells how many bytes below its own frame were written to.
[[gnu::noinline]] inline void* measure_depth(void* line) {
  (*reinterpret_cast<void (*const*)()>(line))();
  std::size_t untouched = 0;
  while (g_deep_stack[untouched] == 0x5a) ++untouched;
  return static_cast<char*>(__builtin_frame_address(0)) - untouched - reinterpret_cast<std::uintptr_t>(g_deep_stack);
}

// depth_of is how many bytes of stack a call of `line` takes, in a test that is compiled OPTIMISED.
inline std::size_t depth_of(void (*line)()) {
  memset(g_deep_stack, 0x5a, sizeof g_deep_stack);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, g_deep_stack, sizeof g_deep_stack);
  pthread_t thread;
  CHECK_EQUAL(0, pthread_create(&thread, &attributes, measure_depth, &line));
  pthread_attr_destroy(&attributes);
  void* bytes = nullptr;
  pthread_join(thread, &bytes);
  return reinterpret_cast<std::size_t>(bytes);
}

}  // namespace coir::test
