#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

namespace coir::test {

// ChildEnd is how a child process ended and what it wrote to standard error.
struct ChildEnd {
  int status = -1;  // of exit; -1 when a signal ended it
  int signal = 0;   // that ended it; 0 when it exited
  char output[16384] = {};

  bool wrote(const char* text) const noexcept;
  int lines() const noexcept;
};

ChildEnd run_child(int (*body)(void*), void* argument) noexcept;

// in_child runs `body` in a forked process, whose exit status is what it returns, and waits for its end. It is
// for code that may end the process. A child that hangs is ended by SIGALRM. No other thread may run.
template <class Body>
ChildEnd in_child(Body&& body) {
  return run_child([](void* argument) { return (*static_cast<std::remove_reference_t<Body>*>(argument))(); },
                   std::addressof(body));
}

}  // namespace coir::test
