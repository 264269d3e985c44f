#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <cstdlib>

#include <coir/port/interrupted.h>
#include <coir/port/memory.h>

#include "base/line.h"
#include "inspect/backtrace.h"
#include "schedule/scheduler.h"

namespace coir {

namespace {

constexpr std::size_t kSignalStackBytes = 64 * 1024;  // touched only when a report is written

// How many runs have installed the report; guarded by g_installing.
constinit pthread_mutex_t g_installing = PTHREAD_MUTEX_INITIALIZER;
constinit unsigned g_installed = 0;

struct sigaction g_previous_segv;
struct sigaction g_previous_bus;

void write_overflow(const FiberControl& fiber) noexcept {
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
}

void on_fault(int signal, siginfo_t* info, void* context) noexcept {
  const Visit run;
  for (std::size_t i = 0; run && i < kStackClassCount; ++i) {
    FiberControl* owner = nullptr;
    bool in_guard = false;
    if (run->stacks.arena(i).contains(info->si_addr, owner, in_guard) && in_guard) {
      write_overflow(*owner);
      Backtrace calls;
      calls.of_interrupted(*owner, port::interrupted_at(context));
      calls.write(STDERR_FILENO);
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
    sigaction(SIGSEGV, &g_previous_segv, nullptr);
    sigaction(SIGBUS, &g_previous_bus, nullptr);
  }
  pthread_mutex_unlock(&g_installing);
}

void* add_signal_stack() noexcept {
  void* const memory = port::reserve(kSignalStackBytes);
  if (memory == nullptr) return nullptr;
  stack_t stack{};
  stack.ss_sp = memory;
  stack.ss_size = kSignalStackBytes;
  sigaltstack(&stack, nullptr);
  return memory;
}

void remove_signal_stack(void* memory) noexcept {
  if (memory == nullptr) return;
  stack_t stack{};
  stack.ss_flags = SS_DISABLE;
  sigaltstack(&stack, nullptr);
  port::release(memory, kSignalStackBytes);
}

void report_overflow(const FiberControl& fiber) noexcept {
  write_overflow(fiber);
  if (&fiber == running_fiber()) {
    Backtrace calls;
    calls.of_caller(fiber);
    calls.write(STDERR_FILENO);
  }
  std::abort();
}

}  // namespace coir
