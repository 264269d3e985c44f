#include <coir/blocking.h>

#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/file.h>
#include <coir/inspect.h>
#include <coir/ledger.h>
#include <coir/port/limits.h>
#include <coir/process.h>
#include <coir/runtime.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <span>
#include <string_view>

#include "tests/support/everywhere.h"
#include "tests/support/gate.h"
#include "tests/support/pipe.h"
#include "tests/support/until.h"

namespace blocking_threads_test {

using coir::blocking;
using coir::blocking_borrowed;
using coir::BlockingStop;
using coir::Deadline;
using coir::ErrorCode;
using coir::Fiber;
using coir::run_until_idle;
using coir::spawn;
using coir::test::count_threads;
using coir::test::Gate;
using coir::test::until;
using namespace std::chrono_literals;

namespace {

// As many as the machine allows; never more than kMost.
const std::size_t kThreads = coir::port::limits().blocking_threads;
constexpr std::size_t kMost = coir::port::Limits::kMostBlockingThreads;

// Emulators and sanitizers have threads of their own; a sanitizer's comes with the first that is started. An emulated
// thread is joined before the kernel's thread beneath it has ended.
const int kThreadsAtStart = [] {
  pthread_t first;
  pid_t id = 0;
  const auto tell = [](void* into) -> void* {
    *static_cast<pid_t*>(into) = gettid();
    return nullptr;
  };
  if (pthread_create(&first, nullptr, tell, &id) == 0) pthread_join(first, nullptr);
  char entry[40];
  snprintf(entry, sizeof entry, "/proc/self/task/%d", static_cast<int>(id));
  until([&] { return access(entry, F_OK) != 0; }, Deadline::after(60s));
  return count_threads();
}();

// blocks_a_fault tells whether the calling thread blocks a signal by which the kernel tells it of its own fault.
bool blocks_a_fault() {
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) {
    if (sigismember(&blocked, fault) != 0) return true;
  }
  return false;
}

// reaches waits until `word` has the value, or for so long that it never will.
bool reaches(const std::atomic<int>& word, int value) noexcept {
  until([&] { return word >= value; }, Deadline::after(60s));
  return word == value;
}

bool threads_go_away() noexcept {
  until([] { return count_threads() <= kThreadsAtStart; }, Deadline::after(60s));
  return count_threads() == kThreadsAtStart;
}

}  // namespace

// The threads that blocking calls run on.
TEST_GROUP_BASE(BlockingThreads, coir::test::Everywhere) {};

TEST(BlockingThreads, no_more_threads_than_the_board_allows_and_the_rest_wait_their_turn) {
  everywhere([&] {
    const std::size_t calls = 3 * kThreads;
    Gate gate;
    std::atomic<int> inside{0}, most{0}, done{0};
    Fiber all[3 * kMost];
    const std::span fibers(all, calls);
    for (Fiber& fiber : fibers) {
      fiber = spawn([&] {
        const auto ran = blocking([&] {
          const int now = ++inside;
          int seen = most.load();
          while (now > seen && !most.compare_exchange_weak(seen, now)) {
          }
          gate.pass();
          --inside;
          ++done;
        });
        expect(ran.has_value());
      });
    }
    expect(reaches(inside, static_cast<int>(kThreads)));
    const auto queued = blocking_borrowed([](const BlockingStop&) {}, Deadline::after(5ms));
    expect(!queued && queued.error() == ErrorCode::timed_out);
    for (std::size_t i = 0; i < calls; ++i) gate.open();
    for (Fiber& fiber : fibers) expect(fiber.join().has_value());
    expect(done == static_cast<int>(calls));
    expect(most == static_cast<int>(kThreads));
  });
}

TEST(BlockingThreads, a_call_that_waits_its_turn_leaves_the_queue_at_its_deadline) {
  everywhere([&] {
    Gate gate;
    std::atomic<int> inside{0};
    Fiber all[kMost];
    const std::span fibers(all, kThreads);
    for (Fiber& fiber : fibers) {
      fiber = spawn([&] {
        expect(blocking([&] {
                 ++inside;
                 gate.pass();
               }).has_value());
      });
    }
    expect(reaches(inside, static_cast<int>(kThreads)));
    std::atomic<bool> ran{false};
    const auto late = blocking([&] { ran = true; }, Deadline::after(5ms));
    expect(!late && late.error() == ErrorCode::timed_out);
    for (std::size_t i = 0; i < kThreads; ++i) gate.open();
    for (Fiber& fiber : fibers) expect(fiber.join().has_value());
    expect(blocking([] {}).has_value());
    expect(!ran);
  });
}

// A fault whose signal its thread blocks ends the process past every handler.
TEST(BlockingThreads, leave_the_signals_of_faults_to_their_handlers) {
  everywhere([&] {
    const auto blocked = blocking(blocks_a_fault);
    expect(blocked && !*blocked);
  });
}

TEST(BlockingThreads, go_away_when_idle_and_their_stacks_are_refunded) {
  CHECK_TRUE(threads_go_away());
  const std::size_t charged = coir::account::stacks.used();
  for (int i = 0; i < 2; ++i) {
    CHECK_TRUE(run_until_idle({.workers = 1}, [&] { expect(blocking([] { return 1; }).has_value()); }).has_value());
    CHECK_TRUE(threads_go_away());
  }
  // In single-worker builds the next call refunds what the last left.
  const std::size_t left = coir::kManyWorkers ? 0 : coir::kBlockingStackBytes * coir::kStackInflation;
  CHECK_TRUE(coir::account::stacks.used() <= charged + left);
  check();
}

TEST(BlockingThreads, without_room_for_a_thread_it_is_refused_and_nothing_is_left) {
  CHECK_TRUE(threads_go_away());
  CHECK_TRUE(run_until_idle({.workers = 1}, [&] {
               coir::account::stacks.set_ceiling(1024);
               const auto refused = blocking([] { return 1; });
               coir::account::stacks.set_ceiling(SIZE_MAX);
               expect(!refused && refused.error() == ErrorCode::limit);
               expect(blocking([] { return 1; }).has_value());
             }).has_value());
  check();
}

namespace {

// Full keeps every thread that the board allows in a call of no kind, until its end.
class Full {
 public:
  Full() {
    for (Fiber& fiber : std::span(all_, kThreads)) {
      fiber = spawn([this] {
        static_cast<void>(blocking([this] {
          ++inside_;
          gate_.pass();
        }));
      });
    }
    full_ = reaches(inside_, static_cast<int>(kThreads));
  }
  ~Full() {
    for (std::size_t i = 0; i < kThreads; ++i) gate_.open();
    for (Fiber& fiber : std::span(all_, kThreads)) static_cast<void>(fiber.join());
  }
  Full(const Full&) = delete;
  Full& operator=(const Full&) = delete;
  bool full() const noexcept { return full_; }

 private:
  Gate gate_;
  std::atomic<int> inside_{0};
  Fiber all_[kMost];
  bool full_ = false;
};

}  // namespace

TEST(BlockingThreads, files_and_processes_go_on_while_other_calls_keep_all_threads) {
  everywhere([&] {
    const Full pool;
    expect(pool.full());
    auto file = coir::File::open("/dev/null", {}, Deadline::after(60s));
    expect(file.has_value());
    const char* const nothing[] = {"true", nullptr};
    expect(coir::run_process({.argv = nothing}, {}, Deadline::after(60s)).has_value());
  });
}

TEST(BlockingThreads, a_call_that_waits_for_a_thread_is_counted_and_dumped) {
  everywhere([&] {
    const Full pool;
    expect(pool.full());
    const auto before = coir::stats();
    expect(before.blocking_running == kThreads && before.blocking_waiting == 0);
    Fiber ninth = spawn([] { static_cast<void>(blocking([] {}, Deadline::after(60s))); });
    for (const Deadline patience = Deadline::after(60s); coir::stats().blocking_waiting == 0 && !patience.passed();)
      coir::yield();
    expect(coir::stats().blocking_waiting == 1 && coir::stats().blocking_waited == before.blocking_waited + 1);
    coir::test::Pipe pipe;
    coir::dump_fibers(pipe.writer);
    char told[128] = {};
    expect(read(pipe.reader, told, sizeof told - 1) > 0);
    expect(std::string_view(told).starts_with("coir: 1 blocking calls wait for a thread: "));
    expect(ninth.cancel().has_value() && ninth.join().has_value());
    expect(coir::stats().blocking_waiting == 0);
  });
}

}  // namespace blocking_threads_test
