#pragma once

#include <cstddef>

namespace coir::explore {

// ExploredContext is an explored thread's stack and its thread-local variables. They are those of a thread of the kernel
// that sleeps for good: the program's first thread takes them up in turn. To hand a turn over is then one system call, and
// not two and a switch of the kernel's threads.
class ExploredContext {
 public:
  // make starts that thread of the kernel, on whose stack the first switch calls body(argument), which never returns.
  void make(void (*body)(void*) noexcept, void* argument) noexcept;

  // be_this_thread is for the caller's own stack and variables.
  void be_this_thread() noexcept;

  // renew_variables sets the executable's thread-local variables to what they were at the beginning. It is for a context
  // that waits for its next run.
  void renew_variables() noexcept;

  friend void switch_to(ExploredContext& from, ExploredContext& to) noexcept;

 private:
  static void* sleep_for_good(void* self) noexcept;
  static void begin(void* message, void* self) noexcept;

  void* sp_ = nullptr;
  char* thread_pointer_ = nullptr;
  char* first_variables_ = nullptr;  // a copy
  void (*body_)(void*) noexcept = nullptr;
  void* argument_ = nullptr;
};

// switch_to parks the caller in `from` and continues `to`. It returns once something switches to `from`.
void switch_to(ExploredContext& from, ExploredContext& to) noexcept;

}  // namespace coir::explore
