#include <coir/channel.h>

#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/runtime.h>

#include <atomic>
#include <memory>

#include "tests/support/counted.h"
#include "tests/support/everywhere.h"
#include "tests/support/mixed.h"
#include "tests/support/thread.h"
#include "tests/support/until.h"

using coir::Deadline;
using coir::ErrorCode;
using coir::Fiber;
using coir::kManyWorkers;
using coir::spawn;
using coir::test::Everywhere;
using coir::test::is;
using coir::test::Mixed;
using coir::test::Random;
using coir::test::Thread;
using namespace std::chrono_literals;
using coir::Channel;
using coir::kUnbounded;
using coir::Task;
using coir::test::Counted;
using coir::test::until_parked;

TEST_GROUP_BASE(Channel, Everywhere){};

TEST(Channel, a_bounded_one_takes_its_capacity_and_then_makes_senders_wait) {
  everywhere([&] {
    Channel<int> channel({.capacity = 3});
    for (int i = 0; i < 3; ++i) expect(channel.send(i, Deadline::now()).has_value());
    expect(is(channel.send(9, Deadline::now()), ErrorCode::timed_out));
    expect(channel.size() == 3);
    bool sent = false;
    Fiber sender = spawn([&] {
      expect(channel.send(3).has_value());
      sent = true;
    });
    until_parked(sender, "send");
    expect(!sent);
    expect(channel.receive() == 0);  // and the value of who waits takes its place
    expect(sender.join() && sent && channel.size() == 3);
    for (int i = 1; i < 4; ++i) expect(channel.receive() == i);
    expect(is(channel.receive(Deadline::now()), ErrorCode::timed_out));
  });
}

TEST(Channel, an_unbounded_one_never_makes_a_sender_wait_and_keeps_the_order) {
  everywhere([&] {
    Channel<int> channel({.capacity = kUnbounded});
    constexpr int kMany = 5'000;
    for (int round = 0; round < 2; ++round) {
      for (int i = 0; i < kMany; ++i) expect(channel.send(i, Deadline::now()).has_value());
      for (int i = 0; i < kMany; ++i) expect(channel.receive() == i);
    }
    expect(channel.size() == 0);
  });
}

TEST(Channel, at_a_rendezvous_send_returns_once_the_value_is_received) {
  everywhere([&] {
    Channel<int> channel;
    std::atomic<bool> sent{false};
    Fiber sender = spawn([&] {
      expect(channel.send(7).has_value());
      sent = true;
    });
    until_parked(sender, "send");
    expect(!sent && channel.size() == 0);
    expect(channel.receive() == 7);
    expect(sender.join() && sent);
    expect(is(channel.send(8, Deadline::now()), ErrorCode::timed_out));
    Fiber receiver = spawn([&] { expect(channel.receive() == 9); });
    expect(channel.send(9).has_value());
    expect(receiver.join().has_value());
  });
}

TEST(Channel, waiters_are_served_in_the_order_in_which_they_came) {
  for (const std::size_t capacity : {std::size_t{0}, std::size_t{1}}) {
    everywhere([&] {
      Channel<int> channel({.capacity = capacity});
      int got[4] = {};
      Fiber fibers[4];
      for (int i = 0; i < 4; ++i) {
        fibers[i] = spawn([&, i] { got[i] = channel.receive().value_or(-1); });
        until_parked(fibers[i], "receive");
      }
      for (int i = 0; i < 4; ++i) expect(channel.send(10 + i).has_value());
      for (Fiber& fiber : fibers) expect(fiber.join().has_value());
      for (int i = 0; i < 4; ++i) expect(got[i] == 10 + i);
      for (int i = 0; i < 4; ++i) {
        fibers[i] = spawn([&, i] { expect(channel.send(20 + i).has_value()); });
        until_parked(fibers[i], "send");  // but for the first where there is room
      }
      for (int i = 0; i < 4; ++i) expect(channel.receive() == 20 + i);
      for (Fiber& fiber : fibers) expect(fiber.join().has_value());
    });
  }
}

TEST(Channel, close_lets_receivers_drain_it_and_then_ends_them) {
  everywhere([&] {
    Channel<int> channel({.capacity = 4});
    expect(channel.send(1) && channel.send(2));
    channel.close();
    channel.close();
    expect(channel.closed());
    expect(is(channel.send(3), ErrorCode::closed));
    expect(channel.receive() == 1);
    expect(channel.receive() == 2);
    expect(is(channel.receive(), ErrorCode::closed));
  });
}

TEST(Channel, close_wakes_everyone_and_leaves_values_with_their_senders) {
  everywhere([&] {
    Channel<std::unique_ptr<int>> full({.capacity = 1}), empty;
    expect(full.send(std::make_unique<int>(0)).has_value());
    Fiber fibers[4];
    for (int i = 0; i < 4; ++i) {
      fibers[i] = spawn([&, i] {
        if (i % 2 == 0) {
          auto value = std::make_unique<int>(i);
          expect(is(full.send(std::move(value)), ErrorCode::closed));
          expect(value != nullptr && *value == i);
        } else {
          expect(is(empty.receive(), ErrorCode::closed));
        }
      });
    }
    for (Fiber& fiber : fibers) until_parked(fiber);
    full.close();
    empty.close();
    for (Fiber& fiber : fibers) expect(fiber.join().has_value());
    auto kept = std::make_unique<int>(5);
    expect(is(empty.send(std::move(kept)), ErrorCode::closed) && kept != nullptr);
    expect(**full.receive() == 0);
  });
}

TEST(Channel, a_wait_that_fails_takes_nothing_and_sends_nothing) {
  everywhere([&] {
    Channel<std::unique_ptr<int>> channel;
    auto value = std::make_unique<int>(1);
    expect(is(channel.send(std::move(value), Deadline::after(1ms)), ErrorCode::timed_out) && value != nullptr);
    expect(is(channel.receive(Deadline::after(1ms)), ErrorCode::timed_out));
    Fiber sender = spawn([&] {
      auto own = std::make_unique<int>(2);
      expect(is(channel.send(std::move(own)), ErrorCode::cancelled) && own != nullptr);
    });
    coir::yield();
    expect(sender.cancel() && sender.join());
    Fiber receiver = spawn([&] { expect(is(channel.receive(), ErrorCode::cancelled)); });
    coir::yield();
    expect(receiver.cancel() && receiver.join());
    expect(is(channel.receive(Deadline::now()), ErrorCode::timed_out));
  });
}

TEST(Channel, threads_and_fibers_talk_both_ways) {
  if (!kManyWorkers) return;
  for (const std::size_t capacity : {std::size_t{0}, std::size_t{4}, kUnbounded}) {
    everywhere([&] {
      Channel<int> there({.capacity = capacity}), back({.capacity = capacity});
      Thread thread([&] {
        while (auto value = there.receive()) expect(back.send(*value + 1).has_value());
        back.close();
      });
      for (int i = 0; i < 300; ++i) {
        expect(there.send(i).has_value());
        expect(back.receive() == i + 1);
      }
      there.close();
      expect(is(back.receive(), ErrorCode::closed));
    });
  }
}

TEST(Channel, two_threads_need_no_runtime) {
  if (!kManyWorkers) return;
  Channel<int> channel({.capacity = 2});
  long sum = 0;
  {
    Thread thread([&] {
      for (int i = 1; i <= 1'000; ++i) static_cast<void>(channel.send(i));
      channel.close();
    });
    while (auto value = channel.receive()) sum += *value;
  }
  LONGS_EQUAL(500'500, sum);
  CHECK_TRUE(is(channel.receive(Deadline::after(1ms)), ErrorCode::closed));
}

// Everything that is sent is received once, whatever times out or is cancelled meanwhile.
TEST(Channel, stress) {
  for (const std::size_t capacity : {std::size_t{0}, std::size_t{1}, std::size_t{5}, kUnbounded}) {
    Mixed mixed("channel");
    Counted::reset();
    {
      Channel<Counted> channel({.capacity = capacity});
      std::atomic<long> sent{0}, received{0}, sum{0};
      mixed.run([&](Random& random) {
        const Deadline deadline = Deadline::after(random.micros(300));
        if (random.below(2) == 0) {
          Counted value(static_cast<int>(random.below(1'000)));
          const int number = value.number();
          if (const auto outcome = channel.send(std::move(value), deadline)) {
            ++sent;
            sum += number;
          } else {
            mixed.expect(value.number() == number &&
                         (outcome.error() == ErrorCode::timed_out || outcome.error() == ErrorCode::cancelled));
          }
        } else if (const auto value = channel.receive(deadline)) {
          ++received;
          sum -= value->number();
        } else {
          mixed.expect(value.error() == ErrorCode::timed_out || value.error() == ErrorCode::cancelled);
        }
      });
      while (const auto value = channel.receive(Deadline::now())) {
        ++received;
        sum -= value->number();
      }
      mixed.expect(sent == received && sum == 0 && sent > 0);
    }
    mixed.expect(Counted::alive() == 0);
    mixed.check();
  }
}
