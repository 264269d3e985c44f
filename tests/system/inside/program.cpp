// Fibers for others to look at: gdb by scripts/gdb/coir.py, a dump, a trace, the watchdog. One reads from a channel
// three calls deep, one sleeps, one waits for a mutex, one has not run yet; main runs. The argument says what main does
// then:
//
//   pause     waits until standard input ends
//   quit      raises SIGQUIT, which dumps all fibers
//   abort     aborts, for a core file
//   spin      keeps its worker for half a second of processor time
//   block     does so in a system call
//   trace     has some fibers work and writes the trace to standard output

#include <coir/channel.h>
#include <coir/fiber.h>
#include <coir/inspect.h>
#include <coir/mutex.h>
#include <coir/runtime.h>
#include <coir/trace.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

// Written after each call, so that none of them is a tail call; seen from outside, so that the writes stay.
extern std::atomic<int> depth;
std::atomic<int> depth;

namespace {

using namespace std::chrono_literals;

struct Shared {
  coir::Channel<int> channel{{.capacity = 1}};
  coir::Mutex mutex;
  const char* what = "";
};

void poll_input() {
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
}

// await_parked returns once a fiber waits where it is to wait: on a busy machine another worker may take its time.
void await_parked(const coir::Fiber& fiber) {
  while (coir::inspect(fiber)->state != coir::FiberState::parked) static_cast<void>(coir::sleep(1ms));
}

}  // namespace

extern "C" {
[[gnu::noinline]] void reads_innermost(Shared& shared) {
  static_cast<void>(shared.channel.receive());
  depth = 3;
}
[[gnu::noinline]] void reads_middle(Shared& shared) {
  reads_innermost(shared);
  depth = 2;
}
[[gnu::noinline]] void reads_outermost(Shared& shared) {
  reads_middle(shared);
  depth = 1;
}
[[gnu::noinline]] void sleeps_long() {
  static_cast<void>(coir::sleep(1h));
  depth = 1;
}
[[gnu::noinline]] void wants_the_mutex(Shared& shared) {
  if (const auto held = shared.mutex.lock()) depth = 0;
  depth = 1;
}
[[gnu::noinline]] void stop_here() {
  depth = 5;
}
// Half a second of processor time. Another thread looks at the clock: a backtrace that is taken inside the C library,
// which keeps no frame pointers, may name nobody above it.
struct SpunOut {
  clockid_t clock;
  std::atomic<bool> over{false};

  static void* look(void* argument) {
    auto& self = *static_cast<SpunOut*>(argument);
    for (timespec used{}; used.tv_sec == 0 && used.tv_nsec < 500'000'000; clock_gettime(self.clock, &used)) {
      usleep(5'000);
    }
    self.over.store(true);
    return nullptr;
  }
};
[[gnu::noinline]] void spins_for_long() {
  SpunOut spun;
  pthread_t looker;
  if (pthread_getcpuclockid(pthread_self(), &spun.clock) != 0) return;
  if (pthread_create(&looker, nullptr, SpunOut::look, &spun) != 0) return;
  while (!spun.over.load()) depth = depth + 1;
  pthread_join(looker, nullptr);
}
[[gnu::noinline]] void blocks_for_long() {
  // Cut short by the watchdog's signal.
  for (int i = 0; i < 10; ++i) usleep(50'000);
  depth = 1;
}
[[gnu::noinline]] void plays(coir::Channel<int>& in, coir::Channel<int>& out, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    static_cast<void>(out.send(i));
    static_cast<void>(in.receive());
  }
}
[[gnu::noinline]] void acts(const Shared& shared) {
  stop_here();
  if (strcmp(shared.what, "pause") == 0) poll_input();
  if (strcmp(shared.what, "quit") == 0) raise(SIGQUIT);
  if (strcmp(shared.what, "abort") == 0) abort();
  if (strcmp(shared.what, "spin") == 0) spins_for_long();
  if (strcmp(shared.what, "block") == 0) blocks_for_long();
  depth = 1;
}
}

int main(int count, char** arguments) {
  Shared shared;
  shared.what = count > 1 ? arguments[1] : "";
  if (!coir::dump_fibers_on(SIGQUIT)) return 1;
  return coir::run([&] {
    auto held = shared.mutex.lock();
    coir::Fiber reader = coir::spawn({.name = "reader"}, [&] { reads_outermost(shared); });
    coir::Fiber sleeper = coir::spawn({.name = "sleeper"}, [] { sleeps_long(); });
    coir::Fiber locker = coir::spawn({.name = "locker"}, [&] { wants_the_mutex(shared); });
    static_cast<void>(coir::sleep(20ms));
    for (const coir::Fiber* each : {&reader, &sleeper, &locker}) await_parked(*each);
    coir::Fiber fresh = coir::spawn({.name = "fresh"}, [] {});
    acts(shared);
    if (strcmp(shared.what, "trace") == 0) {
      coir::Channel<int> there{{.capacity = 0}}, back{{.capacity = 0}};
      coir::Fiber ping = coir::spawn({.name = "ping \"quoted\""}, [&] { plays(back, there, 50); });
      coir::Fiber pong = coir::spawn({.name = "pong"}, [&] {
        for (int i = 0; i < 50; ++i) {
          static_cast<void>(there.receive());
          static_cast<void>(back.send(i));
        }
      });
      static_cast<void>(ping.join());
      static_cast<void>(pong.join());
      static_cast<void>(coir::sleep(5ms));
      if (!coir::write_trace(STDOUT_FILENO)) _exit(3);
    }
    held->unlock();
    static_cast<void>(sleeper.cancel());
    shared.channel.close();
    for (coir::Fiber* each : {&reader, &sleeper, &locker, &fresh}) static_cast<void>(each->join());
  });
}
