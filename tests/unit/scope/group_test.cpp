#include <coir/group.h>

#include <coir/fiber.h>
#include <coir/nursery.h>
#include <coir/runtime.h>
#include <pthread.h>

#include <atomic>

#include "tests/support/everywhere.h"
#include "tests/support/until.h"

namespace group_test {

using coir::Deadline;
using coir::Error;
using coir::ErrorCode;
using coir::Fiber;
using coir::Group;
using coir::kManyWorkers;
using coir::operator""_KiB;
using coir::spawn;
using coir::test::Everywhere;
using coir::test::Together;
using coir::test::until;
using coir::test::until_parked;
using namespace std::chrono_literals;

namespace {

using Outcome = std::expected<void, Error>;

constexpr auto kForEver = 24h;

bool is(const Outcome& outcome, ErrorCode code) {
  return !outcome && outcome.error() == code;
}

bool is(const coir::Started& started, ErrorCode code) {
  return !started && started.error() == code;
}

Outcome fail(ErrorCode code) {
  return std::unexpected(Error(code));
}

}  // namespace

TEST_GROUP_BASE(Group, Everywhere) {};

TEST(Group, join_returns_when_all_jobs_have_ended) {
  everywhere([&] {
    std::atomic<int> ended{0};
    Group group;
    for (int i = 0; i < 20; ++i) {
      expect(bool{group.start([&ended, owner = coir::current()] {
        until_parked(owner);
        ++ended;
      })});
    }
    expect(group.join().has_value());
    expect(ended == 20);
  });
}

TEST(Group, an_empty_join_is_fine_and_a_second_one_is_stale) {
  everywhere([&] {
    Group group;
    expect(group.join().has_value());
    expect(is(group.join(), ErrorCode::stale));
  });
}

TEST(Group, a_job_that_cannot_start_fails_it_unless_it_is_asked) {
  everywhere([&] {
    {
      Group group;
      expect(is(group.start({.stack = 128_KiB}, [] {}), ErrorCode::invalid));
      expect(group.join().has_value());
    }
    Group group;
    std::atomic<int> cancelled{0};
    group.start([&cancelled] { cancelled += is(coir::sleep(kForEver), ErrorCode::cancelled); });
    group.start({.stack = 128_KiB}, [] {});
    expect(is(group.join(), ErrorCode::invalid));
    expect(cancelled == 1);
  });
}

TEST(Group, the_first_failure_cancels_the_others_and_not_the_owner) {
  everywhere([&] {
    std::atomic<int> cancelled{0};
    Group group;
    for (int i = 0; i < 3; ++i) {
      expect(bool{group.start([&cancelled] { cancelled += is(coir::sleep(kForEver), ErrorCode::cancelled); })});
    }
    expect(bool{group.start([] { return fail(ErrorCode::closed); })});
    until([&] { return group.running() == 0; });
    expect(coir::sleep(1us).has_value());
    expect(is(group.start([] {}), ErrorCode::cancelled));
    expect(is(group.join(), ErrorCode::closed));
    expect(cancelled == 3);
  });
}

TEST(Group, no_job_is_accepted_once_joining_began) {
  everywhere([&] {
    std::atomic<bool> refused{false}, waiting{false};
    Group group;
    expect(bool{group.start([&] {
      while (!waiting) coir::yield();
      refused = is(group.start([] {}), ErrorCode::closed);
    })});
    Fiber watcher = spawn([&] {
      // Every attempt is taken until the join begins.
      for (;;) {
        const auto taken = group.start([] {});
        if (taken) {
          coir::yield();
          continue;
        }
        expect(taken.error() == ErrorCode::closed);
        break;
      }
      waiting = true;
    });
    coir::yield();
    expect(group.join().has_value());
    expect(watcher.join().has_value());
    expect(refused);
    expect(is(group.start([] {}), ErrorCode::closed));
  });
}

TEST(Group, does_not_take_its_owners_spawns) {
  everywhere([&] {
    std::atomic<bool> go{false};
    Group group;
    Fiber other = spawn([&go] {
      while (!go) coir::yield();
    });
    expect(group.join().has_value());
    go = true;
    expect(other.join().has_value());
  });
}

TEST(Group, at_its_limit_start_waits) {
  everywhere([&] {
    Together together(2);
    Group group({.limit = 2});
    for (int i = 0; i < 12; ++i) {
      expect(bool{group.start([&] { together.visit(); })});
    }
    expect(group.join().has_value());
    expect(together.most() == 2);
  });
}

TEST(Group, a_join_that_is_cut_short_cancels_the_jobs_and_still_waits) {
  everywhere([&] {
    std::atomic<int> ended{0};
    const auto job = [&ended] {
      static_cast<void>(coir::sleep(kForEver));
      for (int i = 0; i < 5; ++i) coir::yield();
      ++ended;
    };
    {
      Group group;
      expect(bool{group.start(job)} && bool{group.start(job)});
      const Outcome outcome = group.join(Deadline::after(1ms));
      expect(is(outcome, ErrorCode::timed_out) && outcome.error().scope == 0);
      expect(ended == 2);
    }
    {
      Group group;
      expect(bool{group.start(job)});
    }
    expect(ended == 3);
  });
}

TEST(Group, of_a_plain_thread_with_jobs_from_fibers_and_threads) {
  if (!kManyWorkers) return;
  everywhere([&] {
    struct Shared {
      std::atomic<int> ended{0};
      std::atomic<bool> over{false};
      Outcome outcome;
    } shared;
    pthread_t thread;
    pthread_create(
        &thread, nullptr,
        [](void* argument) -> void* {
          auto& self = *static_cast<Shared*>(argument);
          Group group;
          for (int i = 0; i < 10; ++i) {
            group.start([&self, &group] {
              group.start([&self] { ++self.ended; });
              ++self.ended;
            });
          }
          until([&] { return self.ended >= 20; });
          self.outcome = group.join();
          self.over = true;
          return nullptr;
        },
        &shared);
    until([&] { return shared.over.load(); });
    pthread_join(thread, nullptr);
    expect(shared.outcome.has_value() && shared.ended == 20);
  });
}

}  // namespace group_test
