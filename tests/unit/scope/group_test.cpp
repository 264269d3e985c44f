#include <coir/group.h>

#include <coir/fiber.h>
#include <coir/nursery.h>
#include <coir/runtime.h>
#include <pthread.h>

#include <atomic>

#include "tests/support/everywhere.h"
#include "tests/support/until.h"

using coir::Deadline;
using coir::Error;
using coir::ErrorCode;
using coir::Fiber;
using coir::Group;
using coir::kManyWorkers;
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

Outcome fail(ErrorCode code) {
  return std::unexpected(Error(code));
}

}  // namespace

TEST_GROUP_BASE(Group, Everywhere){};

TEST(Group, wait_returns_when_all_jobs_have_ended) {
  everywhere([&] {
    std::atomic<int> ended{0};
    Group group;
    for (int i = 0; i < 20; ++i) {
      expect(group
                 .go([&ended, owner = coir::current()] {
                   until_parked(owner);
                   ++ended;
                 })
                 .has_value());
    }
    expect(group.wait().has_value());
    expect(ended == 20);
  });
}

TEST(Group, an_empty_wait_is_fine) {
  everywhere([&] {
    Group group;
    expect(group.wait().has_value());
    expect(group.wait().has_value());
  });
}

TEST(Group, the_first_failure_cancels_the_others_and_not_the_owner) {
  everywhere([&] {
    std::atomic<int> cancelled{0};
    Group group;
    for (int i = 0; i < 3; ++i) {
      expect(group.go([&cancelled] { cancelled += is(coir::sleep(kForEver), ErrorCode::cancelled); }).has_value());
    }
    expect(group.go([] { return fail(ErrorCode::closed); }).has_value());
    until([&] { return group.running() == 0; });
    expect(coir::sleep(1us).has_value());
    expect(is(group.go([] {}), ErrorCode::cancelled));
    expect(is(group.wait(), ErrorCode::closed));
    expect(cancelled == 3);
  });
}

TEST(Group, no_job_is_accepted_once_waiting_began) {
  everywhere([&] {
    std::atomic<bool> refused{false}, waiting{false};
    Group group;
    expect(group
               .go([&] {
                 while (!waiting) coir::yield();
                 refused = is(group.go([] {}), ErrorCode::closed);
               })
               .has_value());
    Fiber watcher = spawn([&] {
      // Every attempt is taken until the wait begins.
      for (;;) {
        const Outcome taken = group.go([] {});
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
    expect(group.wait().has_value());
    expect(watcher.join().has_value());
    expect(refused);
    expect(is(group.go([] {}), ErrorCode::closed));
  });
}

TEST(Group, does_not_take_its_owners_spawns) {
  everywhere([&] {
    std::atomic<bool> go{false};
    Group group;
    Fiber other = spawn([&go] {
      while (!go) coir::yield();
    });
    expect(group.wait().has_value());
    go = true;
    expect(other.join().has_value());
  });
}

TEST(Group, at_its_limit_go_waits) {
  everywhere([&] {
    Together together(2);
    Group group({.limit = 2});
    for (int i = 0; i < 12; ++i) {
      expect(group.go([&] { together.visit(); }).has_value());
    }
    expect(group.wait().has_value());
    expect(together.most() == 2);
  });
}

TEST(Group, a_wait_that_is_cut_short_cancels_the_jobs_and_still_waits) {
  everywhere([&] {
    std::atomic<int> ended{0};
    const auto job = [&ended] {
      static_cast<void>(coir::sleep(kForEver));
      for (int i = 0; i < 5; ++i) coir::yield();
      ++ended;
    };
    {
      Group group;
      expect(group.go(job).has_value() && group.go(job).has_value());
      const Outcome outcome = group.wait(Deadline::after(1ms));
      expect(is(outcome, ErrorCode::timed_out) && outcome.error().scope == 0);
      expect(ended == 2);
    }
    {
      Group group;
      expect(group.go(job).has_value());
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
            static_cast<void>(group.go([&self, &group] {
              static_cast<void>(group.go([&self] { ++self.ended; }));
              ++self.ended;
            }));
          }
          until([&] { return self.ended >= 20; });
          self.outcome = group.wait();
          self.over = true;
          return nullptr;
        },
        &shared);
    until([&] { return shared.over.load(); });
    pthread_join(thread, nullptr);
    expect(shared.outcome.has_value() && shared.ended == 20);
  });
}
