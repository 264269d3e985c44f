#include <coir/select.h>

#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/runtime.h>

#include <atomic>
#include <memory>
#include <span>

#include "tests/support/child.h"
#include "tests/support/counted.h"
#include "tests/support/everywhere.h"
#include "tests/support/mixed.h"
#include "tests/support/pipe.h"
#include "tests/support/thread.h"
#include "tests/support/until.h"

namespace select_test {

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
using coir::Case;
using coir::Channel;
using coir::Event;
using coir::kUnbounded;
using coir::select;
using coir::Task;
using coir::test::Counted;
using coir::test::in_child;
using coir::test::Pipe;
using coir::test::until_parked;

TEST_GROUP_BASE(Select, Everywhere) {};

TEST(Select, does_the_one_case_that_is_ready_and_no_other) {
  everywhere([&] {
    Channel<int> empty, full({.capacity = 1}), ready({.capacity = 1});
    int none = -1, value = -1, unsent = 5;
    expect(full.send(1) && ready.send(7));
    const auto won =
        select({Case::receive(empty, none), Case::send(full, unsent), Case::receive(ready, value)}, Deadline::now());
    expect(won && won->index == 2 && !won->closed);
    expect(value == 7 && none == -1 && unsent == 5 && full.size() == 1 && ready.size() == 0);
  });
}

TEST(Select, waits_for_whichever_comes_first) {
  everywhere([&] {
    Channel<int> left, right;
    int value = 0;
    const coir::FiberRef selecting = coir::current();
    Fiber sender = spawn([&] {
      until_parked(selecting, "select");
      expect(right.send(4).has_value());
    });
    auto won = select({Case::receive(left, value), Case::receive(right, value)});
    expect(won && won->index == 1 && value == 4);
    expect(sender.join().has_value());
    Fiber receiver = spawn([&] {
      until_parked(selecting, "select");
      expect(left.receive() == 6);
    });
    value = 6;
    won = select({Case::send(left, value), Case::receive(right, value)});
    expect(won && won->index == 0);
    expect(receiver.join().has_value());
    // It stands in no line any more.
    expect(is(left.send(1, Deadline::now()), ErrorCode::timed_out));
    expect(is(right.send(1, Deadline::now()), ErrorCode::timed_out));
  });
}

TEST(Select, two_of_them_meet_on_a_channel) {
  everywhere([&] {
    for (int i = 0; i < 200; ++i) {
      Channel<int> first, second;
      Fiber other = spawn([&] {
        int out = 3;
        expect(select({Case::send(first, out), Case::send(second, out)}).has_value());
      });
      int in = 0;
      expect(select({Case::receive(second, in), Case::receive(first, in)}).has_value());
      expect(in == 3);
      expect(other.join().has_value());
    }
  });
}

TEST(Select, a_closed_channel_is_ready_and_said_to_be_closed) {
  everywhere([&] {
    Channel<int> closed, open;
    int value = 5;
    closed.close();
    auto won = select({Case::receive(open, value), Case::receive(closed, value)});
    expect(won && won->index == 1 && won->closed && value == 5);
    won = select({Case::send(closed, value), Case::receive(open, value)});
    expect(won && won->index == 0 && won->closed && value == 5);
    Fiber closer = spawn([&, selecting = coir::current()] {
      until_parked(selecting, "select");
      open.close();
    });
    won = select({Case::receive(open, value), Case::after(24h)});
    expect(won && won->index == 0 && won->closed && value == 5);
    expect(closer.join().has_value());
  });
}

TEST(Select, otherwise_is_for_when_nothing_is_ready) {
  everywhere([&] {
    Channel<int> channel({.capacity = 1});
    Pipe pipe;
    int value = 0;
    Fiber never = spawn([] { static_cast<void>(coir::sleep(24h)); });
    auto won = select({Case::receive(channel, value), Case::readable(pipe.reader), Case::ended(never), Case::after(24h),
                       Case::otherwise()});
    expect(won && won->index == 4);
    expect(channel.send(1).has_value());
    won = select({Case::receive(channel, value), Case::otherwise()});
    expect(won && won->index == 0 && value == 1);
    pipe.put();
    won = select({Case::otherwise(), Case::receive(channel, value), Case::readable(pipe.reader)});
    expect(won && won->index == 2);
    expect(never.cancel() && never.join());
    won = select({Case::ended(never), Case::otherwise()});
    expect(won && won->index == 0);
  });
}

TEST(Select, a_timer_is_a_case_and_a_deadline_an_error) {
  everywhere([&] {
    Channel<int> never;
    int value = 0;
    const Deadline soon = Deadline::after(3ms);
    auto won = select({Case::receive(never, value), Case::after(24h), Case::at(soon)}, Deadline::after(1h));
    expect(won && won->index == 2 && soon.passed());
    const Deadline deadline = Deadline::after(3ms);
    expect(is(select({Case::receive(never, value), Case::after(24h)}, deadline), ErrorCode::timed_out));
    expect(deadline.passed());
    expect(is(select({Case::receive(never, value)}, Deadline::now()), ErrorCode::timed_out));
  });
}

TEST(Select, is_cancelled_like_every_wait_and_leaves_nothing_behind) {
  everywhere([&] {
    Channel<int> channel;
    Event event;
    Pipe pipe;
    Fiber target = spawn([] { static_cast<void>(coir::sleep(24h)); });
    Fiber fiber = spawn([&] {
      int value = 0;
      const auto won = select({Case::receive(channel, value), Case::opened(event), Case::readable(pipe.reader),
                               Case::ended(target), Case::after(24h)});
      expect(is(won, ErrorCode::cancelled));
    });
    until_parked(fiber, "select");
    expect(fiber.cancel() && fiber.join());
    expect(is(channel.send(1, Deadline::now()), ErrorCode::timed_out));
    expect(target.cancel() && target.join());
    pipe.put();
    expect(coir::wait(pipe.reader, coir::Direction::readable, Deadline::after(10s)).has_value());
    expect(coir::stats().fd_waits == 0 && coir::stats().timers_armed == 0);
  });
}

// One of the two events claims the select, and the other finds it claimed; whichever case it then reports.
TEST(Select, is_fair_when_several_are_ready) {
  everywhere([&] {
    Channel<int> first({.capacity = kUnbounded}), second({.capacity = kUnbounded});
    Pipe pipe;
    Fiber ended = spawn([] {});
    pipe.put();
    coir::yield();
    int won_by[5] = {}, value = 0;
    for (int i = 0; i < 1'000; ++i) {
      if (first.size() == 0) expect(first.send(1).has_value());
      if (second.size() == 0) expect(second.send(1).has_value());
      const auto won = select({Case::receive(first, value), Case::receive(second, value), Case::readable(pipe.reader),
                               Case::ended(ended), Case::at(Deadline::at_ns(1))});
      expect(won.has_value());
      if (won) ++won_by[won->index];
    }
    for (const int times : won_by) expect(times > 50);
    expect(ended.join().has_value());
  });
}

TEST(Select, one_channel_in_several_cases) {
  everywhere([&] {
    Channel<int> channel;
    int in = 0, out = 2, other = 0;
    expect(is(select({Case::receive(channel, in), Case::send(channel, out), Case::receive(channel, other)},
                     Deadline::after(1ms)),
              ErrorCode::timed_out));  // it does not meet itself
    Fiber sender = spawn([&] { expect(channel.send(9).has_value()); });
    const auto won = select({Case::receive(channel, in), Case::receive(channel, other)});
    expect(won && (won->index == 0 ? in : other) == 9);
    expect(sender.join().has_value());
  });
}

TEST(Select, moves_what_only_moves) {
  everywhere([&] {
    Channel<std::unique_ptr<int>> channel, never;
    auto out = std::make_unique<int>(3);
    Fiber receiver = spawn([&] {
      auto in = std::make_unique<int>(0);
      const auto won = select({Case::receive(never, in), Case::receive(channel, in)});
      expect(won && in != nullptr && *in == 3);
    });
    expect(select({Case::send(never, out), Case::send(channel, out)}).has_value());
    expect(out == nullptr);
    expect(receiver.join().has_value());
  });
}

TEST(Select, of_nothing_is_invalid_and_of_a_span_is_possible) {
  everywhere([&] {
    expect(is(select(std::span<Case>{}), ErrorCode::invalid));
    expect(is(select(std::span<Case>{}, Deadline::after(1ms)), ErrorCode::timed_out));
    Channel<int> channels[20];
    int value = 0;
    Fiber sender = spawn([&] { expect(channels[17].send(17).has_value()); });
    Case* cases = static_cast<Case*>(::operator new(sizeof(Case) * 20));
    for (int i = 0; i < 20; ++i) new (cases + i) Case(Case::receive(channels[i], value));
    const auto won = select(std::span(cases, 20));
    expect(won && won->index == 17 && value == 17);
    ::operator delete(cases);
    expect(sender.join().has_value());
  });
}

TEST(Select, one_that_nothing_can_end_is_a_deadlock_and_listed) {
  if (coir::test::cannot_see_threads()) return;
  const auto end = in_child([] {
    return coir::run({.workers = 2}, [] {
      Channel<int> first, second;
      int value = 0;
      static_cast<void>(select({Case::receive(first, value), Case::send(second, value)}));
    });
  });
  LONGS_EQUAL(1, end.status);
  CHECK_TRUE(end.wrote("\"main\" parked waits for one of 2 cases"));
}

TEST(Select, stress) {
  Mixed mixed("select");
  Counted::reset();
  {
    Channel<Counted> channels[] = {Channel<Counted>(), Channel<Counted>({.capacity = 1}),
                                   Channel<Counted>({.capacity = kUnbounded})};
    std::atomic<long> on_its_way{0}, sum{0};
    Event gate;
    mixed.run([&](Random& random) {
      Counted out(static_cast<int>(random.below(1'000))), in(-1);
      const int number = out.number();
      const Deadline deadline = Deadline::after(random.micros(300));
      Channel<Counted>& source = channels[random.below(3)];
      Channel<Counted>& target = channels[random.below(3)];
      switch (random.below(6)) {
        case 0:
          return random.below(2) == 0 ? gate.set() : gate.reset();
        case 1:
          if (const auto value = source.receive(deadline)) --on_its_way, sum -= value->number();
          return;
        default:
          break;
      }
      const auto won = select({Case::receive(source, in), Case::send(target, out), Case::opened(gate),
                               Case::at(Deadline::after(random.micros(400)))},
                              deadline);
      if (!won) {
        return mixed.expect(won.error() == ErrorCode::timed_out || won.error() == ErrorCode::cancelled);
      }
      mixed.expect((won->index == 1) == (out.number() == -1));
      mixed.expect((won->index == 0) == (in.number() >= 0));
      if (won->index == 0) --on_its_way, sum -= in.number();
      if (won->index == 1) ++on_its_way, sum += number;
    });
    for (Channel<Counted>& channel : channels) {
      while (const auto value = channel.receive(Deadline::now())) --on_its_way, sum -= value->number();
    }
    mixed.expect(on_its_way == 0 && sum == 0);
  }
  mixed.expect(Counted::alive() == 0);
  mixed.check();
}

// Which places the ready cases have does not matter.
TEST(Select, each_ready_case_has_the_same_chance) {
  constexpr int kRounds = 4'000;
  for (const std::size_t other : {1u, 3u, 7u}) {
    int won[8] = {};
    CHECK_TRUE(coir::run_until_idle({.workers = 1}, [&] {
                 Channel<int> ready[2] = {Channel<int>({.capacity = 1}), Channel<int>({.capacity = 1})}, never;
                 int value = 0;
                 for (int round = 0; round < kRounds; ++round) {
                   for (Channel<int>& each : ready) static_cast<void>(each.send(1, Deadline::now()));
                   const auto at = [&](std::size_t i) {
                     return Case::receive(i == 0 ? ready[0] : i == other ? ready[1] : never, value);
                   };
                   const auto selected = select({at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)});
                   if (selected) ++won[selected->index];
                 }
               }).has_value());
    LONGS_EQUAL(kRounds, won[0] + won[other]);
    // Six standard deviations.
    CHECK_COMPARE(won[0], >, kRounds / 2 - 190);
    CHECK_COMPARE(won[0], <, kRounds / 2 + 190);
  }
}

}  // namespace select_test
