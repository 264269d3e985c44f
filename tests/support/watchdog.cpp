#include "watchdog.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <coir/inspect.h>
#include <coir/runtime.h>

namespace coir::test {

namespace {

const char* g_what = "";

void on_alarm(int) noexcept {
  constexpr char kHangs[] = "hangs: ";
  [[maybe_unused]] ssize_t n = write(STDERR_FILENO, kHangs, sizeof kHangs - 1);
  n = write(STDERR_FILENO, g_what, strlen(g_what));
  n = write(STDERR_FILENO, "\n", 1);
  dump_fibers(STDERR_FILENO);
  abort();
}

}  // namespace

Watchdog::Watchdog(const char* what) noexcept {
  g_what = what;
  struct sigaction action{};
  action.sa_handler = on_alarm;
  action.sa_flags = SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGALRM, &action, nullptr);
  alarm(kSeconds);
}

Watchdog::~Watchdog() {
  alarm(0);
  ::signal(SIGALRM, SIG_DFL);
}

}  // namespace coir::test
