#include "inspect/crash.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <coir/atomic.h>
#include <coir/config.h>
#include <coir/port/interrupted.h>

#include "inspect/backtrace.h"
#include "schedule/hooks.h"
#if !COIR_NO_ASYNC
#include "fiber/describe.h"
#include "schedule/worker.h"
#endif

namespace coir {

namespace {

constexpr int kCrashSignals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS};
constexpr std::size_t kCrashSignalCount = std::size(kCrashSignals);

using OnCrash = void (*)(const Crash&) noexcept;
constinit SharedAtomic<OnCrash> g_on_crash{nullptr};
constinit SharedAtomic<int> g_teller{0};  // the process's or thread's id that tells; 0: none yet

struct sigaction g_before_crash[kCrashSignalCount];
SignalStack* g_crash_stack = nullptr;
constinit StackBounds g_main_stack{0, 0};  // of the thread that has called on_crash

// is_fault tells a signal of an instruction, which fails again on return.
bool is_fault(int signal, const siginfo_t& info) noexcept {
  return info.si_code > 0 && signal != SIGABRT && signal != SIGSYS;
}

// overflows tells whether an instruction has reached below the main stack: its address is near the stack pointer then,
// which is at the end that the limit sets.
bool overflows(int signal, const siginfo_t& info, const port::Interrupted& at) noexcept {
  if (signal != SIGSEGV || info.si_code <= 0) return false;
  constexpr std::uintptr_t kNear = 64 * 1024;
  const auto address = reinterpret_cast<std::uintptr_t>(info.si_addr);
  const auto near = [](std::uintptr_t a, std::uintptr_t b) noexcept { return a - b + kNear < 2 * kNear; };
  return near(address, at.stack_pointer) && near(at.stack_pointer, g_main_stack.low);
}

// describe_place adds the fiber that was interrupted, and its calls.
void describe_place([[maybe_unused]] Crash& crash, Backtrace& calls, const port::Interrupted& at) noexcept {
#if !COIR_NO_ASYNC
  const Worker* const worker = this_worker();
  if (const FiberControl* const fiber = worker != nullptr ? worker->current() : nullptr; fiber != nullptr) {
    const detail::FiberName name = name_of(*fiber);
    crash.fiber = name.id;
    crash.name = name.name;
    crash.where = name.where;
    if (Backtrace::stack_of(*fiber).holds(at.stack_pointer & ~(sizeof(std::uintptr_t) - 1), sizeof(std::uintptr_t)))
      return calls.of_interrupted(*fiber, at);
  }
  // A build without fibers keeps no frame pointers.
  if (at.stack_pointer >= g_main_stack.low && at.stack_pointer < g_main_stack.high)
    return calls.of_thread({at.stack_pointer & ~(sizeof(std::uintptr_t) - 1), g_main_stack.high}, at);
#endif
  calls.of_thread({0, 0}, at);
}

void on_crash_signal(int signal, siginfo_t* info, void* context) noexcept {
  const int saved = errno;
  const port::Interrupted at = port::interrupted_at(context);
  Crash crash{.signal = signal};
  if (info->si_code <= 0) {
    crash.sender = info->si_pid;
  } else if (signal == SIGSYS) {
    crash.address = static_cast<std::uintptr_t>(info->si_syscall);
  } else {
    crash.address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  }
  Backtrace calls;
  describe_place(crash, calls, at);
  if (crash.fiber == 0 && overflows(signal, *info, at)) crash.overflowed_bytes = g_main_stack.high - g_main_stack.low;
  crash.calls = calls.link_addresses();
  tell_crash(crash);
  errno = saved;
  std::size_t i = 0;
  while (kCrashSignals[i] != signal) ++i;
  const struct sigaction& previous = g_before_crash[i];
  if ((previous.sa_flags & SA_SIGINFO) != 0) return previous.sa_sigaction(signal, info, context);
  if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) return previous.sa_handler(signal);
  ::signal(signal, SIG_DFL);
  if (!is_fault(signal, *info)) raise(signal);
}

// measure_stack notes where the calling thread's stack can reach: the main thread's, whose limit is the process's.
void measure_stack() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) limit.rlim_cur = 8 * 1024 * 1024;
  // The environment and the arguments lie above all frames.
  const std::uintptr_t page = reinterpret_cast<std::uintptr_t>(environ) & ~std::uintptr_t{4095};
  g_main_stack = {page - static_cast<std::uintptr_t>(limit.rlim_cur), page};
}

}  // namespace

void tell_crash(const Crash& crash) noexcept {
  const OnCrash told = g_on_crash.load(std::memory_order_acquire);
  if (told == nullptr) return;
  int none = 0;
  const int self = gettid();
  if (g_teller.compare_exchange_strong(none, self, std::memory_order_relaxed)) return told(crash);
  // Only the first signal is described; the process ends after it. An abort() after an overflow is no second signal.
  while (none != self) pause();
}

std::expected<void, Error> on_crash(void (*told)(const Crash& crash) noexcept) noexcept {
  const bool had = g_on_crash.exchange(told, std::memory_order_acq_rel) != nullptr;
  if (had == (told != nullptr)) return {};
  if (had) {
    for (std::size_t i = 0; i < kCrashSignalCount; ++i) sigaction(kCrashSignals[i], &g_before_crash[i], nullptr);
    remove_signal_stack(g_crash_stack);
    g_crash_stack = nullptr;
    return {};
  }
  g_teller.store(0, std::memory_order_relaxed);
  measure_stack();
  g_crash_stack = add_signal_stack();
  if (g_crash_stack == nullptr) {
    g_on_crash.store(nullptr, std::memory_order_relaxed);
    return std::unexpected(Error{ErrorCode::no_memory});
  }
  struct sigaction action{};
  action.sa_sigaction = on_crash_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (const int signal : kCrashSignals) sigaddset(&action.sa_mask, signal);
  for (std::size_t i = 0; i < kCrashSignalCount; ++i) sigaction(kCrashSignals[i], &action, &g_before_crash[i]);
  return {};
}

}  // namespace coir
