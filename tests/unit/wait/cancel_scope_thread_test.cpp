#include <coir/cancel_scope.h>

#include <coir/broadcast.h>
#include <coir/fiber.h>
#include <coir/process.h>
#include <coir/runtime.h>
#include <coir/select.h>
#include <coir/wait.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>

#include "tests/support/everywhere.h"
#include "tests/support/mixed.h"
#include "tests/support/pipe.h"
#include "tests/support/thread.h"
#include "tests/support/until.h"

namespace cancel_scope_thread_test {

using coir::CancelScope;
using coir::Case;
using coir::Deadline;
using coir::Direction;
using coir::Error;
using coir::ErrorCode;
using coir::Fiber;
using coir::kManyWorkers;
using coir::Process;
using coir::Shield;
using coir::spawn;
using coir::test::Everywhere;
using coir::test::is;
using coir::test::Pipe;
using coir::test::Thread;
using coir::test::until;
using namespace std::chrono_literals;

using Outcome = std::expected<void, Error>;

constexpr auto kForEver = 24h;

// Scopes of plain threads, beside fibers that wait and cancel.
TEST_GROUP_BASE(CancelScopeThread, Everywhere) {};

namespace {

struct OnThread {
  Pipe pipe;
  Fiber fiber;
  std::atomic<bool> over{false};
  std::atomic<int> right{0};

  static void* main(void* argument) {
    auto& self = *static_cast<OnThread*>(argument);
    {
      CancelScope scope(Deadline::after(2ms));
      const Outcome slept = coir::sleep(kForEver);
      self.right += is(slept, ErrorCode::timed_out) && scope.caused(slept.error());
      const Outcome waited = coir::wait(self.pipe.reader, Direction::readable);
      self.right += is(waited, ErrorCode::timed_out) && scope.caused(waited.error());
      const Outcome joined = self.fiber.join();
      self.right += is(joined, ErrorCode::timed_out) && scope.caused(joined.error());
      scope.cancel();
      self.right += is(coir::sleep(kForEver), ErrorCode::cancelled);
      self.right += is(coir::wait(self.pipe.reader, Direction::readable), ErrorCode::cancelled);
      self.right += is(self.fiber.join(), ErrorCode::cancelled);
      self.right += coir::cancelled();
    }
    self.right += coir::sleep(1us).has_value();
    static_cast<void>(self.fiber.cancel());
    self.right += self.fiber.join().has_value();
    self.over = true;
    return nullptr;
  }
};

}  // namespace

TEST(CancelScopeThread, ends_by_its_deadline_and_when_it_is_cancelled) {
  if (!kManyWorkers) return;
  everywhere([&] {
    OnThread on_thread;
    on_thread.fiber = spawn([] { static_cast<void>(coir::sleep(kForEver)); });
    pthread_t thread;
    pthread_create(&thread, nullptr, OnThread::main, &on_thread);
    until([&] { return on_thread.over.load(); });
    pthread_join(thread, nullptr);
    expect(on_thread.right == 9);
  });
}

namespace {

struct Cancelled {
  CancelScope* scope = nullptr;
  Fiber fiber;
  std::atomic<bool> shielded{false}, waits{false}, over{false};
  std::atomic<int> right{0};

  static void* main(void* argument) {
    auto& self = *static_cast<Cancelled*>(argument);
    CancelScope scope;
    self.scope = &scope;
    {
      Shield shield(Deadline::after(2ms));
      self.shielded = true;
      // Cancelled meanwhile.
      self.right += is(self.fiber.join(), ErrorCode::timed_out);
    }
    self.right += is(self.fiber.join(), ErrorCode::cancelled);
    self.over = true;
    return nullptr;
  }

  static void* wait(void* argument) {
    auto& self = *static_cast<Cancelled*>(argument);
    CancelScope scope;
    self.scope = &scope;
    self.waits = true;
    const Outcome joined = self.fiber.join();
    self.right += is(joined, ErrorCode::cancelled) && scope.caused(joined.error());
    self.over = true;
    return nullptr;
  }
};

}  // namespace

TEST(CancelScopeThread, cancelled_it_ends_a_wait_for_a_fiber) {
  if (!kManyWorkers) return;
  everywhere([&] {
    for (int round = 0; round < 20; ++round) {
      Cancelled cancelled;
      cancelled.fiber = spawn([] { static_cast<void>(coir::sleep(kForEver)); });
      pthread_t thread;
      pthread_create(&thread, nullptr, Cancelled::wait, &cancelled);
      while (!cancelled.waits) coir::yield();
      for (int i = 0; i < round; ++i) coir::yield();
      cancelled.scope->cancel();
      until([&] { return cancelled.over.load(); });
      pthread_join(thread, nullptr);
      expect(cancelled.right == 1);
      expect(cancelled.fiber.cancel().has_value() && cancelled.fiber.join().has_value());
    }
  });
}

TEST(CancelScopeThread, a_shield_keeps_cancellation_out) {
  if (!kManyWorkers) return;
  everywhere([&] {
    Cancelled cancelled;
    cancelled.fiber = spawn([] { static_cast<void>(coir::sleep(kForEver)); });
    pthread_t thread;
    pthread_create(&thread, nullptr, Cancelled::main, &cancelled);
    while (!cancelled.shielded) coir::yield();
    cancelled.scope->cancel();
    until([&] { return cancelled.over.load(); });
    pthread_join(thread, nullptr);
    expect(cancelled.right == 2);
    expect(cancelled.fiber.cancel().has_value() && cancelled.fiber.join().has_value());
  });
}

namespace {

// The waits of a plain thread in which the kernel waits.
constexpr int kKernelWaits = 4, kTurns = 6;
Outcome wait_in_kernel(int which, Pipe& pipe, Process& process) {
  const auto outcome_of = [](const auto& outcome) -> Outcome {
    if (!outcome) return std::unexpected(outcome.error());
    return {};
  };
  switch (which) {
    case 0:
      return coir::sleep(kForEver);
    case 1:
      return coir::wait(pipe.reader, Direction::readable);
    case 2:
      return outcome_of(coir::select({Case::readable(pipe.reader), Case::after(kForEver)}));
    default:
      return outcome_of(process.wait());
  }
}

}  // namespace

TEST(CancelScopeThread, cancelled_it_ends_a_wait_of_the_kernel_at_once) {
  if (!kManyWorkers) return;
  const char* const sleeps[] = {"sleep", "1000", nullptr};
  everywhere([&] {
    Pipe pipe;
    auto process = Process::start({.argv = sleeps});
    expect(process.has_value());
    if (!process) return;
    for (int which = 0; which < kKernelWaits; ++which) {
      for (int turns = 0; turns < kTurns; ++turns) {
        std::atomic<CancelScope*> shown{nullptr};
        coir::Event over;
        Thread thread([&] {
          {
            CancelScope scope;
            shown = &scope;
            const Outcome waited = wait_in_kernel(which, pipe, *process);
            expect(is(waited, ErrorCode::cancelled) && scope.caused(waited.error()));
          }
          over.set();
        });
        while (shown == nullptr) coir::yield();
        // From before the wait to within it.
        for (int i = 0; i < turns; ++i) coir::yield();
        if (turns == kTurns - 1) thread.until_blocked();
        shown.load()->cancel();
        expect(over.wait(Deadline::after(60s)).has_value());
      }
    }
  });
}

TEST(CancelScopeThread, its_deadline_ends_the_wait_for_a_process_too) {
  if (!kManyWorkers) return;
  const char* const sleeps[] = {"sleep", "1000", nullptr};
  everywhere([&] {
    Thread([&] {
      auto process = Process::start({.argv = sleeps});
      CancelScope scope(Deadline::after(5ms));
      const auto waited = process->wait();
      expect(is(waited, ErrorCode::timed_out) && scope.caused(waited.error()));
    }).join();
  });
}

namespace {

// Slow takes until `go` to be copied, which a broadcast does under its mutex.
struct Slow {
  static inline std::atomic<bool> copying{false}, go{false};
  Slow() noexcept = default;
  Slow(const Slow&) noexcept {
    copying = true;
    while (!go) sched_yield();
  }
};

}  // namespace

// A subscriber takes the broadcast's mutex, cancelled or not.
TEST(CancelScopeThread, cancelled_it_keeps_nobody_from_subscribing) {
  if (!kManyWorkers) return;
  everywhere([&] {
    Slow::copying = Slow::go = false;
    coir::Broadcast<Slow> news;
    const coir::Subscription<Slow> first(news);
    Thread publisher([&] { expect(news.publish(Slow()) == 1u); });
    until([] { return Slow::copying.load(); });
    std::atomic<bool> about{false};
    coir::Event over;
    Thread subscriber([&] {
      CancelScope scope;
      scope.cancel();
      about = true;
      const coir::Subscription<Slow> second(news);
      over.set();
    });
    until([&] { return about.load(); });
    subscriber.until_blocked();
    Slow::go = true;
    expect(over.wait().has_value());
  });
}

}  // namespace cancel_scope_thread_test
