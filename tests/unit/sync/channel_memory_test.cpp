#include <coir/channel.h>

#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/runtime.h>

#include <atomic>
#include <memory>

#include "tests/support/child.h"
#include "tests/support/counted.h"
#include "tests/support/everywhere.h"
#include "tests/support/mixed.h"
#include "tests/support/thread.h"
#include "tests/support/until.h"

namespace channel_memory_test {

using coir::Deadline;
using coir::ErrorCode;
using coir::Fiber;
using coir::kManyWorkers;
using coir::spawn;
using coir::test::Everywhere;
using coir::test::is;
using namespace std::chrono_literals;
using coir::Account;
using coir::Channel;
using coir::kUnbounded;
using coir::Task;
using coir::test::Counted;
using coir::test::in_child;
using coir::test::until_parked;

// The values of a channel and the memory that holds them.
TEST_GROUP_BASE(ChannelMemory, Everywhere) {};

TEST(ChannelMemory, values_are_moved_and_each_is_destroyed_once) {
  Counted::reset();
  everywhere([&] {
    for (const std::size_t capacity : {std::size_t{0}, std::size_t{2}, kUnbounded}) {
      Channel<Counted> channel({.capacity = capacity});
      Fiber sender = spawn([&] {
        for (int i = 0; i < 50; ++i) expect(channel.send(Counted(i)).has_value());
        channel.close();
      });
      for (int i = 0;; ++i) {
        auto value = channel.receive();
        if (!value) break;
        expect(value->number() == i);
      }
      expect(sender.join().has_value());
      Channel<Counted> dropped({.capacity = kUnbounded});
      for (int i = 0; i < 300; ++i) expect(dropped.send(Counted(i)).has_value());
      expect(dropped.receive()->number() == 0);
    }
  });
  LONGS_EQUAL(0, Counted::alive());
}

TEST(ChannelMemory, its_values_are_charged_and_refunded) {
  Account account("test channel");
  everywhere([&] {
    {
      Channel<int> bounded({.capacity = 100, .account = &account}),
          unbounded({.capacity = kUnbounded, .account = &account});
      expect(account.used() == 0);
      expect(bounded.send(1).has_value());
      expect(account.used() >= 400 && account.used() < 500);
      const std::size_t before = account.used();
      for (int i = 0; i < 10'000; ++i) expect(unbounded.send(i).has_value());
      expect(account.used() - before >= 40'000);
      for (int i = 0; i < 10'000; ++i) expect(unbounded.receive() == i);
      expect(account.used() - before < 1'500);
    }
    expect(account.used() == 0);
  });
}

TEST(ChannelMemory, a_refused_charge_is_an_error_and_the_value_stays_with_the_sender) {
  Account account("test ceiling");
  account.set_ceiling(2'000);
  everywhere([&] {
    Channel<std::unique_ptr<int>> channel({.capacity = kUnbounded, .account = &account});
    auto value = std::make_unique<int>(1);
    int sent = 0;
    for (;;) {
      if (const auto outcome = channel.send(std::move(value)); !outcome) {
        expect(outcome.error() == ErrorCode::no_memory && value != nullptr);
        break;
      }
      ++sent;
      value = std::make_unique<int>(sent);
    }
    expect(sent > 100 && channel.size() == static_cast<std::size_t>(sent));
    while (channel.receive(Deadline::now())) {
    }
    expect(channel.send(std::move(value)).has_value());
    Channel<int> large({.capacity = 1'000, .account = &account});
    expect(is(large.send(1), ErrorCode::no_memory));
    Channel<int> impossible({.capacity = SIZE_MAX / 2});
    expect(is(impossible.send(1), ErrorCode::no_memory));
    Fiber receiver = spawn([&] { expect(large.receive() == 2); });
    until_parked(receiver, "receive");
    expect(large.send(2).has_value());  // from hand to hand
    expect(receiver.join().has_value());
  });
}

TEST(ChannelMemory, of_values_larger_than_a_segment) {
  struct Large {
    int number;
    char bytes[3'000];
  };
  everywhere([&] {
    Channel<Large> channel({.capacity = kUnbounded});
    auto large = std::make_unique<Large>();
    for (int i = 0; i < 10; ++i) {
      large->number = i;
      expect(channel.send(*large).has_value());
    }
    channel.close();
    expect(coir::spawn({.stack = 64 * 1024},
                       [&] {
                         for (int i = 0; i < 10; ++i) expect(channel.receive()->number == i);
                       })
               .join()
               .has_value());
  });
}

TEST(ChannelMemory, fibers_that_only_wait_for_each_other_are_a_deadlock) {
  if (coir::test::cannot_see_threads()) return;
  const auto end = in_child([] {
    return coir::run({.workers = 2}, [] {
      Channel<int> never;
      Fiber sender = spawn({.name = "sender"}, [&] {
        Channel<int> other;
        static_cast<void>(other.send(1));
      });
      static_cast<void>(never.receive());
      static_cast<void>(sender.join());
    });
  });
  LONGS_EQUAL(1, end.status);
  CHECK_TRUE(end.wrote("\"main\" parked waits to receive"));
  CHECK_TRUE(end.wrote("\"sender\" parked waits to send"));
}

TEST(ChannelMemory, to_destroy_one_on_which_somebody_waits_stops_the_program) {
  const auto end = in_child([] {
    return coir::run({.workers = 1}, [] {
      auto channel = std::make_unique<Channel<int>>();
      Fiber fiber = spawn([&] { static_cast<void>(channel->receive()); });
      coir::yield();
      channel.reset();
    });
  });
  CHECK_TRUE(end.signal != 0 || end.status > 1);
  CHECK_TRUE(end.wrote("a channel was destroyed"));
}

}  // namespace channel_memory_test
