#include <coir/config.h>
#include <coir/isolate.h>

#include <CppUTest/TestHarness.h>
#include <coir/atomic.h>
#include <coir/cancel_scope.h>
#include <coir/fiber.h>
#include <coir/ledger.h>
#include <coir/runtime.h>
#include <coir/worker_stack.h>
#include <string.h>

#include <atomic>

#include "tests/support/everywhere.h"
#include "tests/support/mixed.h"
#include "tests/support/scale.h"
#include "tests/support/thread.h"

namespace isolate_test {

using namespace std::chrono_literals;
using coir::Deadline;
using coir::Error;
using coir::ErrorCode;
using coir::Isolate;
using coir::IsolatePort;

namespace {

struct Answer {
  char word;
  int number;
};

constexpr auto kEcho = [](IsolatePort& port) {
  while (auto number = port.receive<int>()) static_cast<void>(port.send(*number + 1));
};

// deep uses more than 4 KB of stack for each level.
__attribute__((noinline)) int deep(int levels) {
  volatile char page[4096];
  memset(const_cast<char*>(page), 1, sizeof page);
  return page[17] + (levels == 0 ? 0 : deep(levels - 1));
}

// used is what the ledger holds for channels: both queues of each isolate.
std::size_t used() noexcept {
  return coir::account::channels.used();
}

}  // namespace

TEST_GROUP_BASE(Isolate, coir::test::Everywhere) {
  // echoes sends numbers through an echoing isolate and tells how many came back right.
  static int echoes(Isolate& isolate, int from, int count) {
    int right = 0;
    for (int i = from; i < from + count; ++i) {
      if (!isolate.send(i)) break;
      auto back = isolate.receive<int>();
      right += back && *back == i + 1;
    }
    return right;
  }
};

TEST(Isolate, a_plain_thread_owns_one_without_any_run) {
  auto isolate = Isolate::spawn(kEcho);
  CHECK_TRUE(isolate.has_value());
  LONGS_EQUAL(100, echoes(*isolate, 0, 100));
  isolate->close();
  CHECK_TRUE(isolate->await().has_value());
}

TEST(Isolate, a_plain_thread_without_any_run_has_its_error) {
  auto isolate = Isolate::spawn(
      [](IsolatePort&) -> std::expected<int, Error> { return std::unexpected(Error{ErrorCode::limit}); });
  CHECK_TRUE(isolate.has_value());
  CHECK_TRUE(isolate->await<int>().error() == ErrorCode::limit);
}

// In builds with one worker the function runs on the thread's stack itself.
TEST(Isolate, its_worker_s_stack_holds_256_kb) {
  constexpr int kLevels = 256 * 1024 / 4096 - 2;  // what else lies in their frames takes less than two levels
  everywhere([&] {
    auto isolate = Isolate::spawn([](IsolatePort&) { return coir::on_worker_stack([] { return deep(kLevels); }); });
    expect(isolate.has_value() && isolate->await<int>().value_or(0) == kLevels + 1);
  });
}

TEST(Isolate, a_full_queue_makes_the_sender_wait) {
  everywhere([&] {
    std::atomic<bool> full{false};
    auto slow = Isolate::spawn(
        [&full](IsolatePort& port) {
          const bool two = port.send(1) && port.send(2);
          const bool third = port.send(3, Deadline::now()).error() == ErrorCode::timed_out;
          full = true;
          return two && third && port.send(3) && port.send(4);
        },
        {.queue_bytes = 64});  // two messages
    expect(slow.has_value());
    while (!full) coir::yield();
    for (int i = 1; i <= 4; ++i) expect(slow->receive<int>().value_or(0) == i);
    expect(slow->await<bool>().value_or(false));
  });
}

TEST(Isolate, close_lets_the_isolate_drain_what_was_sent) {
  everywhere([&] {
    auto isolate = Isolate::spawn([](IsolatePort& port) -> std::expected<int, Error> {
      int sum = 0;
      for (;;) {
        auto number = port.receive<int>();
        if (!number) return number.error() == ErrorCode::closed ? sum : -1;
        sum += *number;
      }
    });
    expect(isolate.has_value());
    for (int i = 1; i <= 10; ++i) expect(isolate->send(i).has_value());
    isolate->close();
    expect(isolate->send(11).error() == ErrorCode::closed);
    expect(isolate->await<int>().value_or(0) == 55);
  });
}

TEST(Isolate, the_result_is_had_once_and_by_its_type) {
  everywhere([&] {
    auto isolate = Isolate::spawn([](IsolatePort&) { return Answer{'d', 7}; });
    expect(isolate.has_value());
    expect(isolate->await<int>().error() == ErrorCode::invalid);
    expect(isolate->await().has_value());
    auto answer = isolate->await<Answer>();
    expect(answer && answer->word == 'd' && answer->number == 7);
    expect(isolate->await<Answer>().error() == ErrorCode::stale);
  });
}

TEST(Isolate, its_error_is_the_result) {
  everywhere([&] {
    auto isolate = Isolate::spawn(
        [](IsolatePort&) -> std::expected<int, Error> { return std::unexpected(Error{ErrorCode::limit}); });
    expect(isolate.has_value());
    expect(isolate->await<int>().error() == ErrorCode::limit);
  });
}

TEST(Isolate, waits_end_by_their_deadlines) {
  everywhere([&] {
    auto isolate = Isolate::spawn([](IsolatePort& port) {
      const bool late = port.receive<int>(Deadline::after(5ms)).error() == ErrorCode::timed_out;
      static_cast<void>(port.send(late));
      while (port.receive<int>()) {
      }
    });
    expect(isolate.has_value());
    expect(isolate->receive<bool>().value_or(false));
    expect(isolate->receive<bool>(Deadline::after(5ms)).error() == ErrorCode::timed_out);
    expect(isolate->receive<bool>(Deadline::now()).error() == ErrorCode::timed_out);
    expect(isolate->await(Deadline::after(5ms)).error() == ErrorCode::timed_out);
  });
}

TEST(Isolate, cancel_ends_its_waits) {
  everywhere([&] {
    auto isolate = Isolate::spawn([](IsolatePort& port) -> std::expected<bool, Error> {
      static_cast<void>(port.send(1));
      return port.receive<int>().error() == ErrorCode::cancelled && port.cancelled();
    });
    expect(isolate.has_value());
    expect(isolate->receive<int>().has_value());
    expect(isolate->cancel().has_value());
    expect(isolate->await<bool>().value_or(false));
  });
}

TEST(Isolate, a_dropped_isolate_is_cancelled_and_joined_and_refunds_all) {
  const std::size_t before = used();
  everywhere([&] {
    for (int i = 0; i < 10; ++i) {
      auto isolate = Isolate::spawn([](IsolatePort& port) {
        while (port.receive<int>()) {
        }
      });
      expect(isolate.has_value() && used() > before);
    }
  });
  LONGS_EQUAL(before, used());
}

TEST(Isolate, cancelling_who_waits_for_a_message_leaves_the_message) {
  everywhere([&] {
    auto isolate = Isolate::spawn(kEcho);
    expect(isolate.has_value());
    auto waiting = coir::spawn([&] { return isolate->receive<int>().error() == ErrorCode::cancelled; });
    coir::yield();
    expect(waiting.cancel().has_value());
    expect(waiting.await().value_or(false));
    expect(echoes(*isolate, 0, 1) == 1);
  });
}

TEST(Isolate, many_fibers_share_one) {
  everywhere([&] {
    constexpr int kFibers = 20, kEach = coir::test::scaled({200, 50, 20, 50});
    auto isolate = Isolate::spawn(kEcho, {.queue_bytes = 128});
    expect(isolate.has_value());
    std::atomic<int> got{0};
    std::atomic<long> sum{0};
    coir::Fiber fibers[kFibers];
    for (int f = 0; f < kFibers; ++f) {
      fibers[f] = coir::spawn([&, f] {
        for (int i = 0; i < kEach; ++i) {
          if (!isolate->send(f * kEach + i)) return;
          if (auto back = isolate->receive<int>(); back) {
            ++got;
            sum += *back - 1;
          }
        }
      });
    }
    for (coir::Fiber& fiber : fibers) expect(fiber.join().has_value());
    constexpr long kAll = kFibers * kEach;
    expect(got == kAll && sum == kAll * (kAll - 1) / 2);
  });
}

TEST(Isolate, at_random_every_message_comes_back_once) {
  coir::test::Mixed mixed("isolate", 4);
  auto isolate = Isolate::spawn(kEcho, {.queue_bytes = 160});
  CHECK_TRUE(isolate.has_value());
  std::atomic<long> sent{0}, received{0}, owed{0};
  const auto back = [&](const std::expected<int, Error>& number) {
    if (!number) return mixed.expect(number.error() != ErrorCode::invalid);
    ++received;
    owed -= *number;
  };
  mixed.run([&](coir::test::Random& random) {
    const int number = static_cast<int>(random.below(1000));
    const auto deadline = random.below(3) == 0 ? Deadline::now() : Deadline::after(random.micros(300));
    if (isolate->send(number, deadline)) {
      ++sent;
      owed += number + 1;
    }
    back(isolate->receive<int>(Deadline::after(random.micros(300))));
  });
  isolate->close();
  while (auto number = isolate->receive<int>()) back(number);
  LONGS_EQUAL(sent.load(), received.load());
  LONGS_EQUAL(0, owed.load());
  CHECK_TRUE(received.load() > 100);
  mixed.check();
}

#if !COIR_SINGLE_WORKER
TEST(Isolate, fibers_and_plain_threads_share_one) {
  constexpr int kEach = coir::test::scaled({500, 100, 50, 100});
  std::atomic<long> sum{0};
  auto isolate = Isolate::spawn(kEcho, {.queue_bytes = 128});
  CHECK_TRUE(isolate.has_value());
  auto use = [&] {
    for (int i = 0; i < kEach; ++i) {
      if (!isolate->send(i)) return;
      if (auto back = isolate->receive<int>(); back) sum += *back;
    }
  };
  {
    coir::test::Thread first(use), second(use);
    CHECK_TRUE(coir::run_until_idle({.workers = 2}, [&] {
                 for (int i = 0; i < 4; ++i) static_cast<void>(coir::spawn(use).detach());
               }).has_value());
  }
  LONGS_EQUAL(6L * kEach * (kEach + 1) / 2, sum.load());
}
#endif

TEST(Isolate, a_plain_threads_wait_for_it_ends_with_its_scope) {
  if (!coir::kManyWorkers) return;  // there no other thread may cancel it
  auto isolate = Isolate::spawn([](IsolatePort& port) { static_cast<void>(port.receive<int>()); });
  CHECK_TRUE(isolate.has_value());
  coir::CancelScope scope;
  std::atomic<bool> waits{false};
  coir::test::Thread canceller([&] {
    while (!waits) coir::yield();
    scope.cancel("outside");
  });
  waits = true;
  const auto got = isolate->receive<int>(Deadline::after(60s));
  CHECK_TRUE(!got && got.error() == ErrorCode::cancelled && scope.caused(got.error()));
}

}  // namespace isolate_test
