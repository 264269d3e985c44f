#include "time_limit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include <CppUTest/Utest.h>

#include <coir/config.h>
#if !COIR_NO_ASYNC
#include <coir/inspect.h>
#endif

namespace coir::test {

namespace {

constexpr long kSeconds = 120;
constexpr long kMostSeconds = 590;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || __has_feature(address_sanitizer) || \
    __has_feature(thread_sanitizer) || !defined(__x86_64__)
constexpr long kSlowness = 2;
#else
constexpr long kSlowness = 1;
#endif

const char* g_threads = nullptr;  // tests/threads

long from_environment(const char* name, long fallback) noexcept {
  const char* text = getenv(name);
  const long value = text == nullptr ? 0 : atol(text);
  return value > 0 ? value : fallback;
}

void say(const char* text) noexcept {
  [[maybe_unused]] const ssize_t n = write(STDERR_FILENO, text, strlen(text));
}

void show_threads() noexcept {
  if (g_threads == nullptr) return;
  char id[16];
  snprintf(id, sizeof id, "%d", static_cast<int>(getpid()));
  const pid_t child = fork();
  if (child == 0) {
    dup2(STDERR_FILENO, STDOUT_FILENO);
    execl(g_threads, g_threads, id, nullptr);
    _exit(127);
  }
  if (child > 0) waitpid(child, nullptr, 0);
}

void on_limit(int) noexcept {
  const UtestShell* test = UtestShell::getCurrent();
  say("hangs: ");
  say(test->getGroup().asCharString());
  say(" ");
  say(test->getName().asCharString());
  say("\n");
#if !COIR_NO_ASYNC
  dump_fibers(STDERR_FILENO);
#endif
  show_threads();
  abort();
}

}  // namespace

void limit_time() noexcept {
  g_threads = getenv("COIR_TEST_THREADS");
  const long wanted =
      from_environment("COIR_TEST_LIMIT", kSeconds) * from_environment("COIR_TEST_SCALE", 100) * kSlowness / 100;

  // Tests set the alarm of the process and children inherit its handler; this timer is neither's.
  struct sigaction action{};
  action.sa_handler = on_limit;
  action.sa_flags = SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGVTALRM, &action, nullptr);
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGVTALRM;
  timer_t timer;
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) return;
  itimerspec limit{};
  limit.it_value.tv_sec = std::min(wanted, kMostSeconds);
  timer_settime(timer, 0, &limit, nullptr);
}

}  // namespace coir::test
