#include <coir/port/spinning.h>

#if COIR_SPIN_CHECKS

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <utility>

namespace coir::port {

namespace {

constinit thread_local int t_held = 0;

// Whether the environment asks for it.
bool checks() noexcept {
  static const bool wanted = ::getenv("COIR_SPIN_CHECKS") != nullptr;
  return wanted;
}

void tell(const char* text) noexcept {
  static_cast<void>(!::write(2, text, strlen(text)));
}

}  // namespace

// Not inlined, like all that reaches a thread-local variable where fibers migrate: a caller may lock, wait and lock
// again, on two threads.
[[gnu::noinline]] void begin_spinning() noexcept {
  asm volatile("");
  ++t_held;
}

[[gnu::noinline]] void end_spinning() noexcept {
  asm volatile("");
  --t_held;
}

[[gnu::noinline]] void expect_no_spinlock(const char* call) noexcept {
  asm volatile("");
  if (t_held == 0 || !checks()) return;
  tell("coir: ");
  tell(call);
  tell(" under a spinlock\n");
  abort();
}

[[gnu::noinline]] int put_spinlocks_aside() noexcept {
  asm volatile("");
  return std::exchange(t_held, 0);
}

[[gnu::noinline]] void put_spinlocks_back(int held) noexcept {
  asm volatile("");
  t_held = held;
}

}  // namespace coir::port

#endif
