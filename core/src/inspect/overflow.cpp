#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <cstdlib>

#include <coir/port/interrupted.h>

#include "base/line.h"
#include "fiber/describe.h"
#include "inspect/backtrace.h"
#include "inspect/crash.h"
#include "schedule/scheduler.h"
#include "wait/park.h"

namespace coir {

namespace {

// How many runs have installed the report; guarded by g_installing.
constinit pthread_mutex_t g_installing = PTHREAD_MUTEX_INITIALIZER;
constinit unsigned g_installed = 0;

struct sigaction g_previous_segv;
struct sigaction g_previous_bus;

// tell tells of an overflow: on standard error, and to the function of on_crash.
void tell(const FiberControl& fiber, int signal, const void* address, Backtrace& calls) noexcept {
  const std::source_location where = fiber.where.load(std::memory_order_relaxed);
  Line line;
  line.text("coir: fiber ")
      .text(fiber.name.load(std::memory_order_relaxed))
      .text(" (spawned at ")
      .text(where.file_name())
      .text(":")
      .number(where.line());
  line.text(") overflowed its ").number(nominal_stack_bytes(fiber.stack_class) / 1024).text(" KB stack\n");
  line.send(STDERR_FILENO);
  calls.write(STDERR_FILENO);
  const detail::FiberName name = name_of(fiber);
  tell_crash({.signal = signal,
              .address = reinterpret_cast<std::uintptr_t>(address),
              .fiber = name.id,
              .name = name.name,
              .where = where,
              .overflowed_bytes = nominal_stack_bytes(fiber.stack_class),
              .calls = calls.link_addresses()});
}

void on_fault(int signal, siginfo_t* info, void* context) noexcept {
  const Visit run;
  for (std::size_t i = 0; run && i < kStackClassCount; ++i) {
    FiberControl* owner = nullptr;
    bool in_guard = false;
    if (run->stacks.arena(i).contains(info->si_addr, owner, in_guard) && in_guard) {
      Backtrace calls;
      calls.of_interrupted(*owner, port::interrupted_at(context));
      tell(*owner, signal, info->si_addr, calls);
      // The default action then makes the core file that the fault deserves: the instruction faults again on return.
      ::signal(signal, SIG_DFL);
      return;
    }
  }
  // Not an overflow: the previous handler decides, or the default action when the instruction faults again.
  const struct sigaction& previous = signal == SIGBUS ? g_previous_bus : g_previous_segv;
  if ((previous.sa_flags & SA_SIGINFO) != 0) return previous.sa_sigaction(signal, info, context);
  if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) return previous.sa_handler(signal);
  ::signal(signal, SIG_DFL);
  if (info->si_code <= 0) raise(signal);  // sent by a process: no instruction faults again
}

// put_back restores the handler of before, unless the program has installed another one meanwhile.
void put_back(int signal, const struct sigaction& previous) noexcept {
  struct sigaction now{};
  sigaction(signal, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_fault) sigaction(signal, &previous, nullptr);
}

}  // namespace

void install_overflow_report() noexcept {
  pthread_mutex_lock(&g_installing);
  if (g_installed++ == 0) {
    struct sigaction action{};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &g_previous_segv);
    sigaction(SIGBUS, &action, &g_previous_bus);
  }
  pthread_mutex_unlock(&g_installing);
}

void remove_overflow_report() noexcept {
  pthread_mutex_lock(&g_installing);
  if (--g_installed == 0) {
    put_back(SIGSEGV, g_previous_segv);
    put_back(SIGBUS, g_previous_bus);
  }
  pthread_mutex_unlock(&g_installing);
}

void report_overflow(const FiberControl& fiber) noexcept {
  Backtrace calls;
  if (&fiber == running_fiber()) calls.of_caller(fiber);
  tell(fiber, SIGABRT, nullptr, calls);
  std::abort();
}

}  // namespace coir
