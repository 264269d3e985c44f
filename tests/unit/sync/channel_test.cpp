#include <coir/channel.h>

#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/runtime.h>
#include <coir/select.h>

#include <atomic>
#include <memory>
#include <utility>

#include "tests/support/child.h"
#include "tests/support/counted.h"
#include "tests/support/everywhere.h"
#include "tests/support/mixed.h"
#include "tests/support/thread.h"
#include "tests/support/until.h"

namespace channel_test {

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

TEST_GROUP_BASE(Channel, Everywhere) {};

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

TEST(Channel, many_go_and_come_in_order_through_every_capacity) {
  everywhere([&] {
    for (const std::size_t capacity : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{128}, kUnbounded}) {
      Channel<int> channel({.capacity = capacity});
      constexpr int kMany = 1'000;
      Fiber sender = spawn([&] {
        int values[90];
        for (int next = 0; next < kMany;) {
          int count = 0;
          while (count < 90 && next < kMany) values[count++] = next++;
          expect(channel.send_many({values, static_cast<std::size_t>(count)}) == static_cast<std::size_t>(count));
        }
        channel.close();
      });
      int into[50];
      int next = 0;
      while (auto count = channel.receive_up_to(into)) {
        expect(*count >= 1 && *count <= 50);
        for (std::size_t i = 0; i < *count; ++i) expect(into[i] == next++);
      }
      expect(next == kMany);
      expect(is(channel.receive_up_to(into), ErrorCode::closed));
      expect(sender.join().has_value());
    }
  });
}

TEST(Channel, values_that_could_be_sent_are_counted_and_the_rest_stays) {
  everywhere([&] {
    Channel<Counted> channel({.capacity = 3});
    Counted values[5] = {Counted(1), Counted(2), Counted(3), Counted(4), Counted(5)};
    expect(channel.send_many(values, Deadline::now()) == 3u);
    expect(values[3].number() == 4 && values[4].number() == 5);
    expect(is(channel.send_many({values + 3, 2}, Deadline::now()), ErrorCode::timed_out));
    expect(channel.send_many({values, 0}) == 0u);
    Counted into[5];
    expect(channel.receive_up_to({into, 0}) == 0u);
    expect(channel.receive_up_to(into, Deadline::now()) == 3u);
    for (int i = 0; i < 3; ++i) expect(into[i].number() == i + 1);
    expect(is(channel.receive_up_to(into, Deadline::now()), ErrorCode::timed_out));
    channel.close();
    expect(is(channel.send_many(values), ErrorCode::closed));
  });
  LONGS_EQUAL(0, Counted::alive());
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

namespace {

// Permit looks at its channel when it is destroyed, as a handle does that goes back to its pool.
struct Permit {
  Permit() noexcept = default;
  explicit Permit(int given) noexcept : number(given) {}
  Permit(Permit&& other) noexcept : number(std::exchange(other.number, 0)) {}
  Permit& operator=(Permit&& other) noexcept {
    number = std::exchange(other.number, 0);
    return *this;
  }
  ~Permit() {
    if (number != 0 && home != nullptr) seen += 1 + static_cast<int>(home->size());
  }

  int number = 0;
  static inline coir::Channel<Permit>* home = nullptr;
  static inline int seen = 0;
};

}  // namespace

TEST(Channel, a_replaced_value_is_destroyed_without_the_channel_s_lock) {
  const auto end = coir::test::in_child([] {
    const auto ran = coir::run_until_idle({.workers = 1}, [] {
      coir::Channel<Permit> channel({.capacity = 4});
      Permit::home = &channel;
      Permit into(1), several[2] = {Permit(2), Permit(3)};
      for (int i = 10; i < 13; ++i) static_cast<void>(channel.send(Permit(i)));
      static_cast<void>(coir::select({coir::Case::receive(channel, into)}));  // 1 goes, 2 are left
      static_cast<void>(channel.receive_up_to(several));                      // 2 and 3 go, 1 and 0 are left
      coir::Fiber receiver = spawn([&] { static_cast<void>(coir::select({coir::Case::receive(channel, into)})); });
      coir::yield();
      Permit more[] = {Permit(20), Permit(21)};
      static_cast<void>(channel.send_many(more));  // 10 goes
      static_cast<void>(receiver.join());
      Permit::home = nullptr;
    });
    return ran && Permit::seen == 1 + 2 + 1 + 1 + 1 + 0 + 1 ? 0 : 1;
  });
  LONGS_EQUAL(0, end.signal);
  LONGS_EQUAL(0, end.status);
}

}  // namespace channel_test
