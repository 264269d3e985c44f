#include "child.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace coir::test {

namespace {

constexpr unsigned kPatienceSeconds = 60;

[[noreturn]] void become_child(int (*body)(void*), void* argument, int error_pipe) noexcept {
  const rlimit no_core{};
  setrlimit(RLIMIT_CORE, &no_core);
  dup2(error_pipe, STDERR_FILENO);
  close(error_pipe);
  alarm(kPatienceSeconds);
  _exit(body(argument));
}

// drop_emulators_line takes out what QEMU's user mode adds when a signal ends its program.
void drop_emulators_line(char* output) noexcept {
  char* const line = strstr(output, "qemu: uncaught target signal");
  if (line == nullptr || (line != output && line[-1] != '\n')) return;
  const char* const end = strchr(line, '\n');
  if (end == nullptr) {
    *line = '\0';
  } else {
    memmove(line, end + 1, strlen(end + 1) + 1);
  }
}

}  // namespace

ChildEnd run_child(int (*body)(void*), void* argument) noexcept {
  ChildEnd end;
  int ends[2];
  if (pipe(ends) != 0) return end;
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    become_child(body, argument, ends[1]);
  }
  close(ends[1]);
  std::size_t used = 0;
  char surplus[256];
  for (;;) {
    const std::size_t room = sizeof end.output - 1 - used;
    const ssize_t n = room > 0 ? read(ends[0], end.output + used, room) : read(ends[0], surplus, sizeof surplus);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    if (room > 0) used += static_cast<std::size_t>(n);
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) end.status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  drop_emulators_line(end.output);
  return end;
}

bool ChildEnd::wrote(const char* text) const noexcept {
  return strstr(output, text) != nullptr;
}

int ChildEnd::lines() const noexcept {
  int count = 0;
  for (const char* at = output; *at != '\0'; ++at) count += *at == '\n';
  return count;
}

}  // namespace coir::test
