#pragma once

#include <coir/process.h>
#include <errno.h>
#include <sys/wait.h>

namespace coir::test {

// Shell is the arguments of a shell script.
struct Shell {
  const char* const argv[4];
  explicit Shell(const char* script) noexcept : argv{"/bin/sh", "-c", script, nullptr} {}
  Command command() const noexcept { return {.argv = argv}; }
};

// no_child_is_left tells that this process has no child, zombies included.
inline bool no_child_is_left() noexcept {
  return waitpid(-1, nullptr, WNOHANG | __WALL) == -1 && errno == ECHILD;
}

}  // namespace coir::test
