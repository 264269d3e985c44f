#include <coir/select.h>

#include <CppUTest/TestHarness.h>
#include <coir/cancellation.h>
#include <coir/fiber.h>
#include <coir/nursery.h>
#include <coir/runtime.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include <atomic>
#include <memory>
#include <optional>

#include "tests/support/everywhere.h"
#include "tests/support/mixed.h"
#include "tests/support/pipe.h"
#include "tests/support/scale.h"
#include "tests/support/thread.h"
#include "tests/support/until.h"

namespace select_cancelled_test {

using coir::CancellationSource;
using coir::CancellationToken;
using coir::CancelScope;
using coir::Case;
using coir::Channel;
using coir::Deadline;
using coir::ErrorCode;
using coir::Fiber;
using coir::kManyWorkers;
using coir::Nursery;
using coir::select;
using coir::spawn;
using coir::test::Everywhere;
using coir::test::is;
using coir::test::Pipe;
using coir::test::Random;
using coir::test::scaled;
using coir::test::Thread;
using coir::test::until;
using coir::test::until_parked;
using namespace std::chrono_literals;

// A cancellation that the caller answers for is a case like any other.
TEST_GROUP_BASE(SelectCancelled, Everywhere) {};

TEST(SelectCancelled, is_ready_from_the_cancellation_on_and_cancels_not_the_caller) {
  everywhere([&] {
    CancellationSource source;
    Channel<int> never;
    int value = 0;
    expect(is(select({Case::cancelled(source.token())}, Deadline::now()), ErrorCode::timed_out));
    Fiber canceller = spawn([&, selecting = coir::current()] {
      until_parked(selecting, "select");
      source.cancel("enough");
    });
    auto won = select({Case::receive(never, value), Case::cancelled(source.token())});
    expect(won && won->index == 1 && !won->closed);
    expect(coir::check_cancelled().has_value());
    won = select({Case::cancelled(source.token()), Case::receive(never, value)}, Deadline::now());
    expect(won && won->index == 0);
    expect(canceller.join().has_value());
  });
}

TEST(SelectCancelled, with_an_empty_token_never_comes) {
  everywhere([&] {
    Channel<int> channel({.capacity = 1});
    int value = 0;
    const auto late =
        select({Case::cancelled(CancellationToken()), Case::receive(channel, value)}, Deadline::after(1ms));
    expect(is(late, ErrorCode::timed_out));
    expect(channel.send(7).has_value());
    const auto won = select({Case::cancelled(CancellationToken()), Case::receive(channel, value)});
    expect(won && won->index == 1 && value == 7);
  });
}

TEST(SelectCancelled, the_callers_own_cancellation_is_an_error_all_the_same) {
  everywhere([&] {
    CancellationSource source;
    Fiber cancelled = spawn([&] { expect(is(select({Case::cancelled(source.token())}), ErrorCode::cancelled)); });
    coir::yield();
    expect(cancelled.cancel().has_value() && cancelled.join().has_value());
    CancelScope scope(Deadline::after(1ms));
    const auto late = select({Case::cancelled(source.token())});
    expect(is(late, ErrorCode::timed_out) && scope.caused(late.error()));
    source.cancel();  // nobody is left in line
  });
}

TEST(SelectCancelled, is_waited_for_beside_every_other_kind_of_case) {
  everywhere([&] {
    for (int which = 0; which < 6; ++which) {
      CancellationSource source, other;
      Channel<int> in, out;
      Pipe pipe;
      Fiber task = spawn([&] {
        if (which != 3) static_cast<void>(coir::sleep(24h));
      });
      Fiber happens = spawn([&, selecting = coir::current()] {
        // The end of a task and a timer come by themselves.
        if (which != 3 && which != 4) until_parked(selecting, "select");
        if (which == 0) expect(in.send(1).has_value());
        if (which == 1) expect(out.receive() == 2);
        if (which == 2) expect(pipe.put());
        if (which == 5) source.cancel();
      });
      int got = 0, sent = 2;
      const auto won = select(
          {Case::receive(in, got), Case::send(out, sent), Case::readable(pipe.reader), Case::ended(task),
           Case::after(which == 4 ? 500us : 24h), Case::cancelled(source.token()), Case::cancelled(other.token())},
          Deadline::after(60s));
      expect(won && won->index == static_cast<std::size_t>(which));
      expect(happens.join().has_value());
      static_cast<void>(task.cancel());
      expect(task.join().has_value());
    }
  });
}

TEST(SelectCancelled, reaches_plain_threads_and_comes_from_them) {
  if (!kManyWorkers) return;
  everywhere([&] {
    for (const bool polls : {false, true}) {
      CancellationSource there, back;
      Channel<int> never;
      Pipe pipe;
      Thread thread([&] {
        int value = 0;
        const auto won = polls ? select({Case::readable(pipe.reader), Case::cancelled(there.token())})
                               : select({Case::receive(never, value), Case::cancelled(there.token())});
        expect(won && won->index == 1);
        back.cancel();
      });
      thread.until_blocked();
      there.cancel();
      expect(select({Case::cancelled(back.token())}).has_value());
    }
  });
}

TEST(SelectCancelled, is_not_lost_between_the_look_and_the_wait) {
  if (!kManyWorkers) return;
  constexpr int kRounds = scaled({4'000, 500, 400, 200});
  everywhere([&] {
    Channel<int> never;
    std::optional<CancellationSource> source;
    std::atomic<int> round{0}, cancelled{0};
    std::atomic<bool> over{false};
    Thread thread([&] {
      for (int i = 1;; ++i) {
        while (round < i && !over) sched_yield();
        if (over) return;
        source->cancel();
        cancelled = i;
      }
    });
    // A busy machine takes its time to let both run.
    const Deadline enough = Deadline::after(2s);
    for (int i = 1; i <= kRounds && !enough.passed(); ++i) {
      source.emplace();
      round = i;
      int value = 0;
      expect(select({Case::receive(never, value), Case::cancelled(source->token())}, Deadline::after(20s)).has_value());
      until([&] { return cancelled >= i; });
    }
    over = true;
  });
}

// Each round fibers, and where there are several workers threads, wait for one source beside a channel, some of them
// within a deadline. Cancelled while they come and go, the source wakes each that still waits.
TEST(SelectCancelled, stress) {
  constexpr int kRounds = scaled({150, 40, 30, 20}), kFibers = 6, kThreads = kManyWorkers ? 2 : 0;
  const char* const given = getenv("COIR_STRESS_SEED");
  const std::uint64_t seed = given != nullptr ? strtoull(given, nullptr, 10) : 20'260'101;
  everywhere([&] {
    Random random{seed};
    for (int round = 0; round < kRounds; ++round) {
      CancellationSource source;
      Channel<int> channel;
      std::atomic<int> told{0};
      const auto wait = [&](std::uint64_t own) {
        Random mine{own};
        for (;;) {
          int value = 0;
          const auto won = select({Case::receive(channel, value), Case::cancelled(source.token())},
                                  mine.below(2) == 0 ? Deadline::never() : Deadline::after(mine.micros(50)));
          if (won && won->index == 1) break;
          expect(won || won.error() == ErrorCode::timed_out);
        }
        ++told;
      };
      std::unique_ptr<Thread> threads[kThreads + 1];
      Nursery nursery;
      for (int i = 0; i < kThreads; ++i) {
        threads[i] =
            std::make_unique<Thread>([&wait, own = seed + static_cast<unsigned>(round + 100 * i)] { wait(own); });
      }
      for (int i = 0; i < kFibers; ++i) {
        expect(nursery.spawn([&wait, own = seed + static_cast<unsigned>(7 * round + i)] { wait(own); }).started());
      }
      for (int i = 0; i < 4; ++i) static_cast<void>(channel.send(i, Deadline::after(random.micros(30))));
      source.cancel();
      expect(nursery.join().has_value());
      for (auto& thread : threads) thread.reset();
      expect(told == kFibers + kThreads);
    }
  });
  if (wrong() != 0) fprintf(stderr, "COIR_STRESS_SEED=%llu\n", static_cast<unsigned long long>(seed));
}

}  // namespace select_cancelled_test
