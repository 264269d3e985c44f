#include "inspect/sample.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <coir/atomic.h>
#include <coir/deadline.h>
#include <coir/port/futex.h>
#include <coir/port/spinning.h>

namespace coir {

namespace {

constexpr std::int64_t kPatienceNs = 1'000'000'000;

// One question at a time. The asker goes idle -> asked, the handler asked -> answering -> answered, the asker -> idle.
// The asker may withdraw only a question that the handler has not begun to answer, asked -> idle. A late handler then
// finds no question, or the next one.
enum Phase : std::uint32_t { kIdle, kPreparing, kAsked, kAnswering, kAnswered };
constinit SharedAtomic<std::uint32_t> g_phase{kIdle};
constinit SharedAtomic<const Worker*> g_asked{nullptr};  // written while preparing
Sample g_answer;                                         // written while answering
struct sigaction g_previous;
constinit SharedAtomic<bool> g_sampler_installed{false};

void on_sample(int number, siginfo_t* info, void* context) noexcept {
  const Worker* const worker = this_worker();
  std::uint32_t asked = kAsked;
  // acquire pairs with the asker's release: this sees the worker in question.
  if (worker == nullptr || g_phase.load(std::memory_order_acquire) != kAsked ||
      g_asked.load(std::memory_order_relaxed) != worker ||
      !g_phase.compare_exchange_strong(asked, kAnswering, std::memory_order_acquire)) {
    if ((g_previous.sa_flags & SA_SIGINFO) != 0) return g_previous.sa_sigaction(number, info, context);
    if (g_previous.sa_handler != SIG_DFL && g_previous.sa_handler != SIG_IGN) g_previous.sa_handler(number);
    return;
  }
  const int saved = errno;
  const FiberControl* const fiber = worker->acting();
  g_answer.fiber_id = fiber != nullptr ? fiber->id.load(std::memory_order_relaxed) : 0;
  g_answer.trace.count = 0;
  const port::Interrupted at = port::interrupted_at(context);
  if (worker->current() != nullptr) {
    g_answer.trace.of_interrupted(*fiber, at);
  } else if (fiber != nullptr) {
    g_answer.trace.pc[0] = at.pc + 1;  // as if it were a return address
    g_answer.trace.count = 1;
  }
  // release pairs with the asker's acquire.
  g_phase.store(kAnswered, std::memory_order_release);
  const int held = port::put_spinlocks_aside();
  port::futex_wake(g_phase);
  port::put_spinlocks_back(held);
  errno = saved;
}

// install installs the handler at the first question, and keeps it.
void install() noexcept {
  if (g_sampler_installed.load(std::memory_order_relaxed)) return;
  struct sigaction action{};
  action.sa_sigaction = on_sample;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGURG, &action, &g_previous);
  g_sampler_installed.store(true, std::memory_order_relaxed);
}

}  // namespace

bool sample(const Worker& worker, Sample& into) noexcept {
  std::uint32_t idle = kIdle;
  if (!g_phase.compare_exchange_strong(idle, kPreparing, std::memory_order_acquire)) return false;
  install();
  g_asked.store(&worker, std::memory_order_relaxed);
  g_phase.store(kAsked, std::memory_order_release);
  const int thread = worker.thread_id();
  const std::int64_t until = monotonic_ns() + kPatienceNs;
  bool answered = false;
  if (thread != 0 && syscall(SYS_tgkill, getpid(), thread, SIGURG) == 0) {
    for (;;) {
      const std::uint32_t phase = g_phase.load(std::memory_order_acquire);
      answered = phase == kAnswered;
      if (answered) break;
      const std::int64_t left = until - monotonic_ns();
      std::uint32_t asked = kAsked;
      if (left <= 0 && g_phase.compare_exchange_strong(asked, kPreparing, std::memory_order_acquire)) break;
      // Once it is being answered that takes microseconds.
      port::futex_wait(g_phase, phase, left > 0 ? left : 1'000'000);
    }
  }
  if (answered) into = g_answer;
  g_phase.store(kIdle, std::memory_order_release);
  return answered;
}

}  // namespace coir
