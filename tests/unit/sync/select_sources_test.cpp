#include <coir/select.h>

#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/runtime.h>

#include <atomic>
#include <span>

#include "tests/support/everywhere.h"
#include "tests/support/mixed.h"
#include "tests/support/pipe.h"
#include "tests/support/thread.h"
#include "tests/support/until.h"

namespace select_sources_test {

using coir::Deadline;
using coir::ErrorCode;
using coir::Fiber;
using coir::kManyWorkers;
using coir::spawn;
using coir::test::Everywhere;
using coir::test::is;
using coir::test::Thread;
using namespace std::chrono_literals;
using coir::Case;
using coir::Channel;
using coir::Event;
using coir::kUnbounded;
using coir::select;
using coir::Task;
using coir::test::Pipe;
using coir::test::until;
using coir::test::until_parked;

// Sources are what a select waits for beside channels: descriptors, ends of fibers, events; and from plain threads.
TEST_GROUP_BASE(SelectSources, Everywhere) {};

TEST(SelectSources, a_descriptor_is_a_case_and_which_of_several_is_told) {
  everywhere([&] {
    Pipe first, second;
    Channel<int> never;
    int value = 0;
    const coir::FiberRef selecting = coir::current();
    for (int i = 0; i < 20; ++i) {
      Pipe& chosen = i % 3 == 0 ? first : second;
      Fiber writer = spawn([&] {
        if (i % 2 == 0) until_parked(selecting, "select");
        chosen.put();
      });
      for (;;) {
        const auto won =
            select({Case::readable(first.reader), Case::receive(never, value), Case::readable(second.reader)},
                   Deadline::after(30s));
        expect(won && won->index != 1);
        if (!won) return;
        char byte;
        const int fd = won->index == 0 ? first.reader : second.reader;
        if (read(fd, &byte, 1) != 1) continue;  // known of old
        expect(fd == chosen.reader);
        break;
      }
      expect(writer.join().has_value());
    }
  });
}

TEST(SelectSources, a_semaphore_is_a_case_and_takes_its_permits_only_if_it_wins) {
  everywhere([&] {
    coir::Semaphore permits(1);
    Event never;
    auto won = select({Case::opened(never), Case::acquire(permits)});
    expect(won && won->index == 1 && permits.available() == 0);
    const coir::FiberRef selecting = coir::current();
    Fiber giver = spawn([&] {
      until_parked(selecting, "select");
      permits.release(1);  // too little: it stays in line
      until_parked(selecting, "select");
      permits.release(1);
    });
    won = select({Case::acquire(permits, 2), Case::opened(never)});
    expect(won && won->index == 0 && permits.available() == 0);
    expect(giver.join().has_value());
    Event open;
    open.set();
    permits.release(5);
    for (int i = 0; i < 10; ++i) {
      const std::uint64_t before = permits.available();
      won = select({Case::opened(open), Case::acquire(permits)}, Deadline::now());
      expect(won && permits.available() == before - won->index);
      permits.release(won ? won->index : 0);
    }
  });
}

// The first in line, if it wants many permits, keeps those behind it waiting, but not once it leaves.
TEST(SelectSources, a_select_that_leaves_a_semaphores_line_lets_those_behind_pass) {
  everywhere([&] {
    coir::Semaphore permits(1);
    Event end;
    Fiber many = spawn([&] {
      const auto won = select({Case::acquire(permits, 3), Case::opened(end)});
      expect(won && won->index == 1);
    });
    until_parked(many, "select");
    Fiber one = spawn([&] { expect(permits.acquire().has_value()); });
    until_parked(one, "semaphore");
    end.set();
    expect(many.join().has_value());
    expect(one.join().has_value());
  });
}

TEST(SelectSources, a_mutex_is_a_case_that_hands_a_guard_over) {
  everywhere([&] {
    coir::Mutex mutex;
    Event never;
    std::optional<coir::Mutex::Guard> guard;
    auto won = select({Case::lock(mutex, guard), Case::opened(never)});
    expect(won && won->index == 0 && guard && mutex.locked());
    std::optional<coir::Mutex::Guard> second;
    expect(is(select({Case::lock(mutex, second)}), ErrorCode::deadlock));
    expect(!second);
    std::atomic<bool> again{false};
    Fiber other = spawn([&] {
      std::optional<coir::Mutex::Guard> held;
      const auto late = select({Case::opened(never), Case::lock(mutex, held), Case::after(1ms)});
      expect(late && late->index == 2 && !held);
      again = true;
      const auto mine = select({Case::opened(never), Case::lock(mutex, held)});
      expect(mine && mine->index == 1 && held);
    });
    until([&] { return again.load(); });
    until_parked(other, "select");
    guard.reset();
    expect(other.join().has_value());
    expect(!mutex.locked());
  });
}

TEST(SelectSources, selects_and_locks_exclude_each_other_and_all_are_served) {
  everywhere([&] {
    coir::Mutex mutex;
    Channel<int> never({.capacity = 8});
    int inside = 0, turns = 0;
    Fiber fibers[4];
    for (int i = 0; i < 4; ++i) {
      fibers[i] = spawn([&, i] {
        for (int n = 0; n < 300; ++n) {
          std::optional<coir::Mutex::Guard> guard;
          if (i % 2 == 0) {
            int value = 0;
            const auto won = select({Case::receive(never, value), Case::lock(mutex, guard)});
            expect(won && won->index == 1);
          } else if (auto held = mutex.lock()) {
            guard.emplace(std::move(*held));
          }
          expect(guard.has_value() && ++inside == 1);
          if (n % 5 == 0) coir::yield();
          ++turns;
          --inside;
        }
      });
    }
    for (Fiber& each : fibers) expect(each.join().has_value());
    expect(turns == 1200 && !mutex.locked());
  });
}

TEST(SelectSources, neither_of_two_descriptors_that_get_ready_at_once_is_forgotten) {
  everywhere([&] {
    for (const bool swapped : {false, true}) {
      Pipe first, second;
      Fiber reader = spawn([&] {
        bool got[2] = {};
        while (!got[0] || !got[1]) {
          const auto won = select({Case::readable(first.reader), Case::readable(second.reader)}, Deadline::after(20s));
          expect(won.has_value());
          if (!won) return;
          if ((won->index == 0 ? first : second).get()) got[won->index] = true;
        }
      });
      until_parked(reader, "select");
      expect((swapped ? first : second).put() && (swapped ? second : first).put());
      expect(reader.join().has_value());
    }
  });
}

TEST(SelectSources, no_event_of_a_descriptor_is_lost_to_another_case) {
  everywhere([&] {
    Pipe first, second;
    Channel<int> channel({.capacity = kUnbounded});
    constexpr int kRounds = 100;
    Fiber writer = spawn([&, selecting = coir::current()] {
      for (int i = 0; i < kRounds; ++i) {
        first.put();
        second.put();
        expect(channel.send(i).has_value());
        if (i % 4 == 0) until_parked(selecting, "select");
      }
    });
    int got[3] = {}, value = 0;
    while (got[0] < kRounds || got[1] < kRounds || got[2] < kRounds) {
      const auto won =
          select({Case::readable(first.reader), Case::readable(second.reader), Case::receive(channel, value)},
                 Deadline::after(30s));
      expect(won.has_value());
      if (!won) return;
      if (won->index == 2) {
        ++got[2];
      } else {
        char bytes[64];
        const ssize_t n = read(won->index == 0 ? first.reader : second.reader, bytes, sizeof bytes);
        if (n > 0) got[won->index] += static_cast<int>(n);
      }
    }
    expect(writer.join().has_value());
  });
}

// The last byte and the end of the stream come as one edge while another case wins. Later turns tell both.
TEST(SelectSources, an_end_that_comes_with_bytes_is_not_lost_to_another_case) {
  everywhere([&] {
    for (const bool swapped : {false, true}) {
      Pipe first(Pipe::Kind::sockets), second(Pipe::Kind::sockets);
      Fiber reader = spawn([&] {
        int ends = 0;
        while (ends < 2) {
          const auto won = select({Case::readable(first.reader), Case::readable(second.reader)}, Deadline::after(20s));
          expect(won.has_value());
          if (!won) return;
          char byte;  // one read for each turn
          if (read(won->index == 0 ? first.reader : second.reader, &byte, 1) == 0) ++ends;
        }
      });
      until_parked(reader, "select");
      Pipe& one = swapped ? second : first;
      Pipe& other = swapped ? first : second;
      expect(one.put());
      one.close_writer();
      expect(other.put());
      other.close_writer();
      expect(reader.join().has_value());
    }
  });
}

TEST(SelectSources, a_descriptor_that_is_closed_meanwhile_ends_it) {
  everywhere([&] {
    Pipe pipe;
    Fiber closer = spawn([&, selecting = coir::current()] {
      until_parked(selecting, "select");
      pipe.close_reader();
    });
    const auto won = select({Case::readable(pipe.reader), Case::after(24h)});
    expect(won && won->index == 0 && won->closed);
    expect(closer.join().has_value());
  });
}

TEST(SelectSources, the_end_of_a_task_is_a_case_and_its_result_stays) {
  everywhere([&] {
    Channel<int> never;
    int value = 0;
    for (const bool late : {false, true}) {
      Task<int> task = spawn([late, selecting = coir::current()] {
        if (late) until_parked(selecting, "select");
        return 42;
      });
      const auto won = select({Case::receive(never, value), Case::ended(task)});
      expect(won && won->index == 1 && task.done());
      expect(task.await(Deadline::now()) == 42);
    }
    Fiber target = spawn([] { static_cast<void>(coir::sleep(24h)); });
    expect(is(select({Case::ended(target)}, Deadline::after(1ms)), ErrorCode::timed_out));
    Fiber joiner = spawn([&] { expect(target.join().has_value()); });
    until_parked(joiner, "join");
    // Others may wait for it as well, and one select by two cases.
    expect(is(select({Case::ended(target), Case::ended(target)}, Deadline::after(1ms)), ErrorCode::timed_out));
    Fiber selecting = spawn(
        [&] { expect(select({Case::receive(never, value), Case::ended(target), Case::ended(target)}).has_value()); });
    until_parked(selecting, "select");
    expect(target.cancel() && joiner.join() && selecting.join());
  });
}

TEST(SelectSources, an_event_is_a_case) {
  everywhere([&] {
    Event event;
    Channel<int> never;
    int value = 0;
    Fiber setter = spawn([&, selecting = coir::current()] {
      until_parked(selecting, "select");
      event.set();
    });
    auto won = select({Case::receive(never, value), Case::opened(event)});
    expect(won && won->index == 1);
    won = select({Case::opened(event), Case::receive(never, value)}, Deadline::now());
    expect(won && won->index == 0);
    expect(setter.join().has_value());
  });
}

TEST(SelectSources, a_thread_waits_for_all_of_it_as_well) {
  if (!kManyWorkers) return;
  everywhere([&] {
    Channel<int> channel;
    Pipe pipe, silent;
    Event over, seen;
    std::atomic<bool> last{false};
    Fiber target = spawn([&] { static_cast<void>(over.wait()); });
    Thread thread([&] {
      int value = 0;
      auto won = select({Case::readable(pipe.reader), Case::receive(channel, value)});
      expect(won && won->index == 1 && value == 1);
      won = select({Case::readable(pipe.reader), Case::receive(channel, value)});
      expect(won && won->index == 0);
      won = select({Case::readable(silent.reader), Case::receive(channel, value), Case::after(2ms)});
      expect(won && won->index == 2);
      expect(is(select({Case::receive(channel, value)}, Deadline::after(1ms)), ErrorCode::timed_out));
      last = true;
      won = select({Case::receive(channel, value), Case::ended(target)});
      expect(won && won->index == 1);
      seen.set();
    });
    expect(channel.send(1).has_value());
    thread.until_blocked();
    pipe.put();
    until([&] { return last.load(); });
    thread.until_blocked();
    over.set();
    expect(seen.wait().has_value());
    expect(target.join().has_value());
  });
}

TEST(SelectSources, a_thread_hears_that_a_number_is_no_descriptor) {
  if (!kManyWorkers) return;
  Event never;
  const auto won = select({Case::opened(never), Case::readable(-1)}, Deadline::after(20s));
  CHECK_TRUE(!won && won.error() == ErrorCode::invalid);
}

TEST(SelectSources, cases_may_be_used_again) {
  everywhere([&] {
    Pipe pipe;
    Channel<int> channel({.capacity = 1});
    int value = 0;
    Case cases[] = {Case::receive(channel, value), Case::readable(pipe.reader)};
    for (int i = 0; i < 20; ++i) {
      Fiber other = spawn([&] {
        if (i % 2 == 0) {
          expect(channel.send(i).has_value());
        } else {
          expect(pipe.put());
        }
      });
      for (;;) {
        const auto won = select(std::span(cases), Deadline::after(20s));
        expect(won.has_value());
        if (!won || won->index == 0 || pipe.get()) break;
      }
      expect(other.join().has_value());
    }
    expect(value == 18);
  });
}

// One of two descriptors is closed, and then the other gets ready, before the select runs again.
TEST(SelectSources, the_descriptor_that_was_closed_is_the_one_that_is_told) {
  for (const bool ppoll : {false, true}) {
    CHECK_TRUE(coir::run_until_idle({.workers = 1, .force_ppoll = ppoll}, [&] {
                 Pipe healthy, closed;
                 Fiber selects = spawn([&] {
                   const auto won = select({Case::readable(healthy.reader), Case::readable(closed.reader)});
                   expect(won && won->index == 1 && won->closed);
                   // The readiness of the other is not lost.
                   const auto next = select({Case::readable(healthy.reader)}, Deadline::after(20s));
                   expect(next && next->index == 0 && !next->closed && healthy.get());
                 });
                 coir::yield();
                 coir::yield();
                 expect(healthy.put());
                 closed.close_reader();
                 coir::yield_to_events();
                 expect(selects.join().has_value());
               }).has_value());
    check();
  }
}

namespace {

// first_place_wins selects among two places of one thing that comes, and others; then again and again, as each select
// looks at its cases in an order of its own. `renew` has the thing there once more.
template <class Renew>
bool first_place_wins(Case one, Renew renew) {
  constexpr int kTimes = 32;
  for (int i = 0; i < kTimes; ++i) {
    if (i > 0) renew();
    const auto won = select({Case::at(Deadline::never()), one, one, Case::at(Deadline::never())}, Deadline::after(30s));
    if (!won || won->index != 1) return false;
  }
  return true;
}

}  // namespace

// On a thread as on a fiber, and whether it is there already or still comes.
TEST(SelectSources, a_case_that_is_listed_twice_counts_by_its_first_place) {
  everywhere([&] {
    Pipe pipe;
    const coir::FiberRef selecting = coir::current();
    Fiber writer = spawn([&] {
      until_parked(selecting, "select");
      pipe.put();
    });
    expect(first_place_wins(Case::readable(pipe.reader), [&] { pipe.put(); }));
    static_cast<void>(writer.join());
    Event end;
    Fiber ending = spawn([&] { static_cast<void>(end.wait()); });
    Fiber ends = spawn([&] {
      until_parked(selecting, "select");
      end.set();
    });
    expect(first_place_wins(Case::ended(ending), [] {}));
    static_cast<void>(ends.join());
    if (!kManyWorkers) return;
    Event looked;
    Thread thread([&] {
      expect(first_place_wins(Case::readable(pipe.reader), [&] { pipe.put(); }));
      looked.set();
    });
    static_cast<void>(looked.wait());
  });
}

}  // namespace select_sources_test
