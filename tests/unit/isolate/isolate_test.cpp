#include <coir/config.h>
#include <coir/isolate.h>

#include <CppUTest/TestHarness.h>
#include <coir/atomic.h>
#include <coir/cancel_scope.h>
#include <coir/fiber.h>
#include <coir/ledger.h>
#include <coir/runtime.h>

#include <atomic>

#include "tests/support/everywhere.h"
#include "tests/support/mixed.h"
#include "tests/support/scale.h"
#include "tests/support/thread.h"

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

// used is what the ledger holds for channels: both queues of each worker.
std::size_t used() noexcept {
  return coir::account::channels.used();
}

}  // namespace

TEST_GROUP_BASE(IsolatedWorker, coir::test::Everywhere){
    // echoes sends numbers through an echoing worker and tells how many came back right.
    static int echoes(Isolate & worker, int from, int count){int right = 0;
for (int i = from; i < from + count; ++i) {
  if (!worker.send(i)) break;
  auto back = worker.receive<int>();
  right += back && *back == i + 1;
}
return right;
}
}
;

TEST(IsolatedWorker, a_plain_thread_owns_one_without_any_run) {
  auto worker = Isolate::spawn(kEcho);
  CHECK_TRUE(worker.has_value());
  LONGS_EQUAL(100, echoes(*worker, 0, 100));
  worker->close();
  CHECK_TRUE(worker->await().has_value());
}

TEST(IsolatedWorker, a_full_queue_makes_the_sender_wait) {
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

TEST(IsolatedWorker, close_lets_the_worker_drain_what_was_sent) {
  everywhere([&] {
    auto worker = Isolate::spawn([](IsolatePort& port) -> std::expected<int, Error> {
      int sum = 0;
      for (;;) {
        auto number = port.receive<int>();
        if (!number) return number.error() == ErrorCode::closed ? sum : -1;
        sum += *number;
      }
    });
    expect(worker.has_value());
    for (int i = 1; i <= 10; ++i) expect(worker->send(i).has_value());
    worker->close();
    expect(worker->send(11).error() == ErrorCode::closed);
    expect(worker->await<int>().value_or(0) == 55);
  });
}

TEST(IsolatedWorker, the_result_is_had_once_and_by_its_type) {
  everywhere([&] {
    auto worker = Isolate::spawn([](IsolatePort&) { return Answer{'d', 7}; });
    expect(worker.has_value());
    expect(worker->await<int>().error() == ErrorCode::invalid);
    expect(worker->await().has_value());
    auto answer = worker->await<Answer>();
    expect(answer && answer->word == 'd' && answer->number == 7);
    expect(worker->await<Answer>().error() == ErrorCode::stale);
  });
}

TEST(IsolatedWorker, its_error_is_the_result) {
  everywhere([&] {
    auto worker = Isolate::spawn(
        [](IsolatePort&) -> std::expected<int, Error> { return std::unexpected(Error{ErrorCode::limit}); });
    expect(worker.has_value());
    expect(worker->await<int>().error() == ErrorCode::limit);
  });
}

TEST(IsolatedWorker, waits_end_by_their_deadlines) {
  everywhere([&] {
    auto worker = Isolate::spawn([](IsolatePort& port) {
      const bool late = port.receive<int>(Deadline::after(5ms)).error() == ErrorCode::timed_out;
      static_cast<void>(port.send(late));
      while (port.receive<int>()) {
      }
    });
    expect(worker.has_value());
    expect(worker->receive<bool>().value_or(false));
    expect(worker->receive<bool>(Deadline::after(5ms)).error() == ErrorCode::timed_out);
    expect(worker->receive<bool>(Deadline::now()).error() == ErrorCode::timed_out);
    expect(worker->await(Deadline::after(5ms)).error() == ErrorCode::timed_out);
  });
}

TEST(IsolatedWorker, cancel_ends_its_waits) {
  everywhere([&] {
    auto worker = Isolate::spawn([](IsolatePort& port) -> std::expected<bool, Error> {
      static_cast<void>(port.send(1));
      return port.receive<int>().error() == ErrorCode::cancelled && port.cancelled();
    });
    expect(worker.has_value());
    expect(worker->receive<int>().has_value());
    worker->cancel();
    expect(worker->await<bool>().value_or(false));
  });
}

TEST(IsolatedWorker, a_dropped_worker_is_cancelled_and_joined_and_refunds_all) {
  const std::size_t before = used();
  everywhere([&] {
    for (int i = 0; i < 10; ++i) {
      auto worker = Isolate::spawn([](IsolatePort& port) {
        while (port.receive<int>()) {
        }
      });
      expect(worker.has_value() && used() > before);
    }
  });
  LONGS_EQUAL(before, used());
}

TEST(IsolatedWorker, cancelling_who_waits_for_a_message_leaves_the_message) {
  everywhere([&] {
    auto worker = Isolate::spawn(kEcho);
    expect(worker.has_value());
    auto waiting = coir::spawn([&] { return worker->receive<int>().error() == ErrorCode::cancelled; });
    coir::yield();
    expect(waiting.cancel().has_value());
    expect(waiting.await().value_or(false));
    expect(echoes(*worker, 0, 1) == 1);
  });
}

TEST(IsolatedWorker, many_fibers_share_one) {
  everywhere([&] {
    constexpr int kFibers = 20, kEach = coir::test::scaled({200, 50, 20, 50});
    auto worker = Isolate::spawn(kEcho, {.queue_bytes = 128});
    expect(worker.has_value());
    std::atomic<int> got{0};
    std::atomic<long> sum{0};
    coir::Fiber fibers[kFibers];
    for (int f = 0; f < kFibers; ++f) {
      fibers[f] = coir::spawn([&, f] {
        for (int i = 0; i < kEach; ++i) {
          if (!worker->send(f * kEach + i)) return;
          if (auto back = worker->receive<int>(); back) {
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

TEST(IsolatedWorker, at_random_every_message_comes_back_once) {
  coir::test::Mixed mixed("isolate", 4);
  auto worker = Isolate::spawn(kEcho, {.queue_bytes = 160});
  CHECK_TRUE(worker.has_value());
  std::atomic<long> sent{0}, received{0}, owed{0};
  const auto back = [&](const std::expected<int, Error>& number) {
    if (!number) return mixed.expect(number.error() != ErrorCode::invalid);
    ++received;
    owed -= *number;
  };
  mixed.run([&](coir::test::Random& random) {
    const int number = static_cast<int>(random.below(1000));
    const auto deadline = random.below(3) == 0 ? Deadline::now() : Deadline::after(random.micros(300));
    if (worker->send(number, deadline)) {
      ++sent;
      owed += number + 1;
    }
    back(worker->receive<int>(Deadline::after(random.micros(300))));
  });
  worker->close();
  while (auto number = worker->receive<int>()) back(number);
  LONGS_EQUAL(sent.load(), received.load());
  LONGS_EQUAL(0, owed.load());
  CHECK_TRUE(received.load() > 100);
  mixed.check();
}

#if !COIR_SINGLE_WORKER
TEST(IsolatedWorker, fibers_and_plain_threads_share_one) {
  constexpr int kEach = coir::test::scaled({500, 100, 50, 100});
  std::atomic<long> sum{0};
  auto worker = Isolate::spawn(kEcho, {.queue_bytes = 128});
  CHECK_TRUE(worker.has_value());
  auto use = [&] {
    for (int i = 0; i < kEach; ++i) {
      if (!worker->send(i)) return;
      if (auto back = worker->receive<int>(); back) sum += *back;
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

TEST(IsolatedWorker, a_plain_threads_wait_for_it_ends_with_its_scope) {
  if (!coir::kManyWorkers) return;  // there no other thread may cancel it
  auto worker = Isolate::spawn([](IsolatePort& port) { static_cast<void>(port.receive<int>()); });
  CHECK_TRUE(worker.has_value());
  coir::CancelScope scope;
  std::atomic<bool> waits{false};
  coir::test::Thread canceller([&] {
    while (!waits) coir::yield();
    scope.cancel("outside");
  });
  waits = true;
  const auto got = worker->receive<int>(Deadline::after(60s));
  CHECK_TRUE(!got && got.error() == ErrorCode::cancelled && scope.caused(got.error()));
}
