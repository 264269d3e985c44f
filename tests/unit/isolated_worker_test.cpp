#include <coir/isolated_worker.h>

#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/ledger.h>
#include <coir/runtime.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

#include "tests/support/everywhere.h"
#include "tests/support/mixed.h"
#include "tests/support/scale.h"
#include "tests/support/thread.h"

using namespace std::chrono_literals;
using coir::Deadline;
using coir::Error;
using coir::ErrorCode;
using coir::Worker;
using coir::WorkerPort;

namespace {

struct Job {
  int number;
  char what[20];
};

// Line is a message of no fixed size, and not trivially copyable.
class Line {
 public:
  explicit Line(std::string_view text) noexcept : size_(text.copy(text_, sizeof text_)) {}
  Line(const Line& other) noexcept : Line(other.text()) {}
  Line& operator=(const Line&) = delete;

  std::string_view text() const noexcept { return {text_, size_}; }
  Line with(char more) const noexcept {
    Line longer(*this);
    longer.text_[longer.size_++] = more;
    return longer;
  }

  std::size_t marshalled_bytes() const noexcept { return size_; }
  void marshal(std::span<std::byte> into) const noexcept { memcpy(into.data(), text_, size_); }
  static std::expected<Line, Error> unmarshal(std::span<const std::byte> from) noexcept {
    if (from.empty()) return std::unexpected(Error{ErrorCode::invalid});
    return Line({reinterpret_cast<const char*>(from.data()), from.size()});
  }

 private:
  char text_[300];
  std::size_t size_;
};

// Owner is trivially movable in no way: it does not cross.
struct Owner {
  std::unique_ptr<int> owned;
};

template <class T>
constexpr bool kCrosses = requires(Worker& worker, WorkerPort& port, const T& message) {
  worker.send(message);
  port.send(message);
  worker.recv<T>();
};
static_assert(kCrosses<int> && kCrosses<Job> && kCrosses<Line>);
static_assert(!kCrosses<Owner> && !kCrosses<int*> && !kCrosses<const char*> && !kCrosses<std::string_view> &&
              !kCrosses<std::span<int>> && !kCrosses<std::nullptr_t>);

template <class F>
constexpr bool kRuns = requires(F f) { Worker::spawn(f); };
constexpr auto kNoResult = [](WorkerPort&) {};
constexpr auto kNoPort = [] {};
constexpr auto kPointerResult = [](WorkerPort&) -> const char* { return ""; };
constexpr auto kOwning = [owner = Owner()](WorkerPort&) { return owner.owned == nullptr; };
static_assert(kRuns<decltype(kNoResult)> && !kRuns<decltype(kNoPort)> && !kRuns<decltype(kPointerResult)> &&
              !kRuns<decltype(kOwning)>);

constexpr auto kEcho = [](WorkerPort& port) {
  while (auto number = port.recv<int>()) static_cast<void>(port.send(*number + 1));
};

// used is what the ledger holds for channels: both queues of each worker.
std::size_t used() noexcept {
  return coir::account::channels.used();
}

}  // namespace

TEST_GROUP_BASE(IsolatedWorker, coir::test::Everywhere){
    // echoes sends numbers through an echoing worker and tells how many came back right.
    static int echoes(Worker & worker, int from, int count){int right = 0;
for (int i = from; i < from + count; ++i) {
  if (!worker.send(i)) break;
  auto back = worker.recv<int>();
  right += back && *back == i + 1;
}
return right;
}
}
;

TEST(IsolatedWorker, messages_go_there_and_back_in_order) {
  everywhere([&] {
    auto worker = Worker::spawn([](WorkerPort& port) {
      while (auto job = port.recv<Job>()) {
        ++job->number;
        static_cast<void>(port.send(*job));
      }
    });
    expect(worker.has_value());
    for (int i = 0; i < 20; ++i) expect(worker->send(Job{i, "fold"}).has_value());
    for (int i = 0; i < 20; ++i) {
      auto job = worker->recv<Job>();
      expect(job && job->number == i + 1 && std::string_view(job->what) == "fold");
    }
    worker->close();
    expect(worker->result().has_value());
  });
}

TEST(IsolatedWorker, a_plain_thread_owns_one_without_any_run) {
  auto worker = Worker::spawn(kEcho);
  CHECK_TRUE(worker.has_value());
  LONGS_EQUAL(100, echoes(*worker, 0, 100));
  worker->close();
  CHECK_TRUE(worker->result().has_value());
}

TEST(IsolatedWorker, a_marshalled_message_of_any_size_crosses) {
  everywhere([&] {
    auto worker = Worker::spawn(
        [](WorkerPort& port) {
          while (auto line = port.recv<Line>()) static_cast<void>(port.send(line->with('!')));
        },
        {.queue_bytes = 256});
    expect(worker.has_value());
    char text[241];
    memset(text, 'x', sizeof text);
    // 240 bytes and their header fill the queue; each size leaves its records at other places of the ring.
    for (std::size_t size = 1; size < 240; size += 7) {
      const Line line(std::string_view(text, size));
      expect(worker->send(line).has_value());
      auto back = worker->recv<Line>();
      expect(back && back->text() == line.with('!').text());
    }
    expect(worker->send(Line(std::string_view(text, 241))).error() == ErrorCode::limit);
  });
}

TEST(IsolatedWorker, messages_of_uneven_size_go_round_the_ring_whole_and_in_order) {
  everywhere([&] {
    auto worker = Worker::spawn(
        [](WorkerPort& port) {
          while (auto line = port.recv<Line>()) static_cast<void>(port.send(*line));
        },
        {.queue_bytes = 256});
    expect(worker.has_value());
    char text[100];
    memset(text, 'x', sizeof text);
    constexpr int kLines = 200, kAhead = 3;
    // Some are always on their way, so that neither ring is ever found empty and begun anew.
    const auto line = [&text](int i) {
      return Line(std::string_view(text, static_cast<std::size_t>(1 + i * 29 % 83)));
    };
    for (int i = 0; i < kLines; ++i) {
      expect(worker->send(line(i)).has_value());
      if (i < kAhead) continue;
      auto back = worker->recv<Line>();
      expect(back && back->text() == line(i - kAhead).text());
    }
  });
}

TEST(IsolatedWorker, a_message_of_another_type_stays_for_who_asks_for_it) {
  everywhere([&] {
    auto worker = Worker::spawn([](WorkerPort& port) { static_cast<void>(port.send(7)); });
    expect(worker.has_value());
    expect(worker->recv<long>().error() == ErrorCode::invalid);
    expect(worker->recv<int>().value_or(0) == 7);
    expect(worker->recv<int>().error() == ErrorCode::closed);
  });
}

TEST(IsolatedWorker, what_unmarshals_badly_is_an_error_and_gone) {
  everywhere([&] {
    auto worker = Worker::spawn([](WorkerPort& port) {
      static_cast<void>(port.send(Line("")));
      static_cast<void>(port.send(Line("next")));
    });
    expect(worker.has_value());
    expect(worker->recv<Line>().error() == ErrorCode::invalid);
    auto next = worker->recv<Line>();
    expect(next && next->text() == "next");
  });
}

TEST(IsolatedWorker, a_full_queue_makes_the_sender_wait) {
  everywhere([&] {
    std::atomic<bool> full{false};
    auto slow = Worker::spawn(
        [&full](WorkerPort& port) {
          const bool two = port.send(1) && port.send(2);
          const bool third = port.send(3, Deadline::now()).error() == ErrorCode::timed_out;
          full = true;
          return two && third && port.send(3) && port.send(4);
        },
        {.queue_bytes = 64});  // two messages
    expect(slow.has_value());
    while (!full) coir::yield();
    for (int i = 1; i <= 4; ++i) expect(slow->recv<int>().value_or(0) == i);
    expect(slow->result<bool>().value_or(false));
  });
}

TEST(IsolatedWorker, close_lets_the_worker_drain_what_was_sent) {
  everywhere([&] {
    auto worker = Worker::spawn([](WorkerPort& port) -> std::expected<int, Error> {
      int sum = 0;
      for (;;) {
        auto number = port.recv<int>();
        if (!number) return number.error() == ErrorCode::closed ? sum : -1;
        sum += *number;
      }
    });
    expect(worker.has_value());
    for (int i = 1; i <= 10; ++i) expect(worker->send(i).has_value());
    worker->close();
    expect(worker->send(11).error() == ErrorCode::closed);
    expect(worker->result<int>().value_or(0) == 55);
  });
}

TEST(IsolatedWorker, the_result_is_had_once_and_by_its_type) {
  everywhere([&] {
    auto worker = Worker::spawn([](WorkerPort&) { return Line("done"); });
    expect(worker.has_value());
    expect(worker->result<int>().error() == ErrorCode::invalid);
    expect(worker->result().has_value());
    auto line = worker->result<Line>();
    expect(line && line->text() == "done");
    expect(worker->result<Line>().error() == ErrorCode::stale);
  });
}

TEST(IsolatedWorker, its_error_is_the_result) {
  everywhere([&] {
    auto worker = Worker::spawn(
        [](WorkerPort&) -> std::expected<int, Error> { return std::unexpected(Error{ErrorCode::limit}); });
    expect(worker.has_value());
    expect(worker->result<int>().error() == ErrorCode::limit);
  });
}

TEST(IsolatedWorker, waits_end_by_their_deadlines) {
  everywhere([&] {
    auto worker = Worker::spawn([](WorkerPort& port) {
      const bool late = port.recv<int>(Deadline::after(5ms)).error() == ErrorCode::timed_out;
      static_cast<void>(port.send(late));
      while (port.recv<int>()) {
      }
    });
    expect(worker.has_value());
    expect(worker->recv<bool>().value_or(false));
    expect(worker->recv<bool>(Deadline::after(5ms)).error() == ErrorCode::timed_out);
    expect(worker->recv<bool>(Deadline::now()).error() == ErrorCode::timed_out);
    expect(worker->result(Deadline::after(5ms)).error() == ErrorCode::timed_out);
  });
}

TEST(IsolatedWorker, cancel_ends_its_waits) {
  everywhere([&] {
    auto worker = Worker::spawn([](WorkerPort& port) -> std::expected<bool, Error> {
      static_cast<void>(port.send(1));
      return port.recv<int>().error() == ErrorCode::cancelled && port.cancelled();
    });
    expect(worker.has_value());
    expect(worker->recv<int>().has_value());
    worker->cancel();
    expect(worker->result<bool>().value_or(false));
  });
}

TEST(IsolatedWorker, a_dropped_worker_is_cancelled_and_joined_and_refunds_all) {
  const std::size_t before = used();
  everywhere([&] {
    for (int i = 0; i < 10; ++i) {
      auto worker = Worker::spawn([](WorkerPort& port) {
        while (port.recv<int>()) {
        }
      });
      expect(worker.has_value() && used() > before);
    }
  });
  LONGS_EQUAL(before, used());
}

TEST(IsolatedWorker, cancelling_who_waits_for_a_message_leaves_the_message) {
  everywhere([&] {
    auto worker = Worker::spawn(kEcho);
    expect(worker.has_value());
    auto waiting = coir::spawn([&] { return worker->recv<int>().error() == ErrorCode::cancelled; });
    coir::yield();
    expect(waiting.cancel().has_value());
    expect(waiting.await().value_or(false));
    expect(echoes(*worker, 0, 1) == 1);
  });
}

TEST(IsolatedWorker, many_fibers_share_one) {
  everywhere([&] {
    constexpr int kFibers = 20, kEach = coir::test::scaled({200, 50, 20, 50});
    auto worker = Worker::spawn(kEcho, {.queue_bytes = 128});
    expect(worker.has_value());
    std::atomic<int> got{0};
    std::atomic<long> sum{0};
    coir::Fiber fibers[kFibers];
    for (int f = 0; f < kFibers; ++f) {
      fibers[f] = coir::spawn([&, f] {
        for (int i = 0; i < kEach; ++i) {
          if (!worker->send(f * kEach + i)) return;
          if (auto back = worker->recv<int>(); back) {
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
  coir::test::Mixed mixed("isolated worker", 4);
  auto worker = Worker::spawn(kEcho, {.queue_bytes = 160});
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
    back(worker->recv<int>(Deadline::after(random.micros(300))));
  });
  worker->close();
  while (auto number = worker->recv<int>()) back(number);
  LONGS_EQUAL(sent.load(), received.load());
  LONGS_EQUAL(0, owed.load());
  CHECK_TRUE(received.load() > 100);
  mixed.check();
}

#if !(defined(COIR_SINGLE_WORKER) && COIR_SINGLE_WORKER)
TEST(IsolatedWorker, fibers_and_plain_threads_share_one) {
  constexpr int kEach = coir::test::scaled({500, 100, 50, 100});
  std::atomic<long> sum{0};
  auto worker = Worker::spawn(kEcho, {.queue_bytes = 128});
  CHECK_TRUE(worker.has_value());
  auto use = [&] {
    for (int i = 0; i < kEach; ++i) {
      if (!worker->send(i)) return;
      if (auto back = worker->recv<int>(); back) sum += *back;
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
