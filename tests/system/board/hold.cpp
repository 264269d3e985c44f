// hold PID stops the main thread of a process on the emulated board for good, and leaves its other threads to run: on a
// board with one worker nothing is served, as if a fiber never gave its worker back. It stays until it is killed.

#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char** arguments) {
  const pid_t pid = count > 1 ? atoi(arguments[1]) : 0;
  if (ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) != 0 || ptrace(PTRACE_INTERRUPT, pid, nullptr, nullptr) != 0)
    return 1;
  if (waitpid(pid, nullptr, __WALL) != pid) return 1;
  for (;;) pause();
}
