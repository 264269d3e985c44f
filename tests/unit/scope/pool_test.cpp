#include <coir/pool.h>

#include <coir/cancel_scope.h>
#include <coir/fiber.h>
#include <coir/nursery.h>
#include <coir/runtime.h>
#include <pthread.h>

#include <atomic>
#include <memory>

#include "tests/support/counted.h"
#include "tests/support/everywhere.h"
#include "tests/support/scale.h"
#include "tests/support/until.h"

namespace pool_test {

using coir::Deadline;
using coir::Error;
using coir::ErrorCode;
using coir::Fiber;
using coir::kManyWorkers;
using coir::Nursery;
using coir::Pool;
using coir::spawn;
using coir::test::Counted;
using coir::test::Everywhere;
using coir::test::scaled;
using coir::test::Together;
using coir::test::until;
using coir::test::until_parked;
using coir::test::until_sleepers;
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

TEST_GROUP_BASE(Pool, Everywhere) {};

TEST(Pool, as_many_jobs_as_fibers_run_at_a_time_and_close_drains) {
  everywhere([&] {
    std::atomic<int> ended{0};
    Together together(3);
    Pool<8> pool({.fibers = 3});
    for (int i = 0; i < 60; ++i) {
      expect(pool.submit([&] {
                   together.visit();
                   ++ended;
                 })
                 .has_value());
    }
    expect(pool.close().has_value());
    expect(ended == 60 && together.most() == 3);
    expect(is(pool.close(), ErrorCode::stale));
  });
}

TEST(Pool, a_full_backlog_refuses_and_a_submit_waits_until_its_deadline) {
  everywhere([&] {
    std::atomic<bool> go{false};
    std::atomic<int> ended{0}, began{0};
    Pool<2> pool({.fibers = 1});
    const auto job = [&] {
      ++began;
      until([&] { return go.load(); });
      ++ended;
    };
    expect(pool.try_submit(job).has_value());
    while (began == 0) coir::yield();
    expect(pool.try_submit(job).has_value() && pool.try_submit(job).has_value());
    expect(pool.backlog() == 2);
    expect(is(pool.try_submit(job), ErrorCode::queue_full));
    expect(is(pool.submit(job, Deadline::after(1ms)), ErrorCode::timed_out));
    Fiber waiting = spawn([&] { expect(pool.submit(job).has_value()); });
    coir::yield();
    go = true;
    expect(waiting.join().has_value());
    expect(pool.close().has_value());
    expect(ended == 4);
  });
}

TEST(Pool, closed_it_refuses_and_who_waits_for_room_is_told) {
  everywhere([&] {
    std::atomic<bool> go{false}, told{false};
    Pool<1> pool({.fibers = 1});
    const auto job = [&] { until([&] { return go.load(); }); };
    expect(pool.submit(job).has_value());
    while (pool.backlog() != 0) coir::yield();
    expect(pool.submit(job).has_value());
    Fiber waiting = spawn([&] { told = is(pool.submit(job), ErrorCode::closed); });
    Fiber opener = spawn([&] {
      while (!told) coir::yield();
      go = true;
    });
    coir::yield();
    expect(pool.close().has_value());
    expect(waiting.join().has_value() && opener.join().has_value());
    expect(told);
    expect(is(pool.try_submit([] {}), ErrorCode::closed));
    expect(is(pool.submit([] {}), ErrorCode::closed));
  });
}

TEST(Pool, the_first_error_is_kept_and_the_other_jobs_go_on) {
  everywhere([&] {
    std::atomic<int> ended{0};
    Pool<4> pool({.fibers = 1});
    expect(pool.submit([] { return fail(ErrorCode::busy); }).has_value());
    expect(pool.submit([] { return fail(ErrorCode::closed); }).has_value());
    for (int i = 0; i < 10; ++i) expect(pool.submit([&ended] { ++ended; }).has_value());
    expect(is(pool.close(), ErrorCode::busy));
    expect(ended == 10);
  });
}

TEST(Pool, jobs_are_moved_and_destroyed_once) {
  everywhere([&] {
    Counted::reset();
    std::atomic<int> sum{0};
    {
      Pool<2> pool({.fibers = 2});
      for (int i = 1; i <= 10; ++i) {
        expect(pool.submit([&sum, value = Counted(i)] { sum += value.number(); }).has_value());
      }
    }
    expect(sum == 55);
    expect(Counted::alive() == 0 && Counted::ended() == 10);
  });
}

TEST(Pool, a_cancelled_owner_ends_the_jobs_and_closes) {
  everywhere([&] {
    std::atomic<int> cancelled{0};
    Fiber owner = spawn([&] {
      Pool<4> pool({.fibers = 2});
      for (int i = 0; i < 4; ++i) {
        expect(pool.submit([&cancelled] { cancelled += is(coir::sleep(kForEver), ErrorCode::cancelled); }).has_value());
      }
      expect(is(pool.close(), ErrorCode::cancelled));
      expect(is(pool.try_submit([] {}), ErrorCode::closed));
    });
    until_sleepers(2);
    expect(owner.cancel().has_value() && owner.join().has_value());
    expect(cancelled == 4);
  });
}

TEST(Pool, cancelled_it_refuses_who_waits_for_room) {
  everywhere([&] {
    Pool<1> pool({.fibers = 1});
    const auto job = [] { static_cast<void>(coir::sleep(kForEver)); };
    expect(pool.submit(job).has_value());
    while (pool.backlog() != 0) coir::yield();
    expect(pool.submit(job).has_value());
    Fiber waiting = spawn([&] {
      // It may be taken when the cancelled job makes room before the worker leaves.
      const Outcome outcome = pool.submit(job);
      expect(outcome.has_value() || outcome.error() == ErrorCode::closed);
    });
    coir::yield();
    pool.cancel();
    expect(waiting.join().has_value());
    expect(pool.close().has_value());
  });
}

namespace {

// A job that takes its time to be copied into the backlog.
struct SlowToCopy {
  std::atomic<bool>*copying, *go;
  std::atomic<int>* ran;
  SlowToCopy(std::atomic<bool>* c, std::atomic<bool>* g, std::atomic<int>* r) : copying(c), go(g), ran(r) {}
  SlowToCopy(SlowToCopy&&) = default;
  SlowToCopy(const SlowToCopy& other) : copying(other.copying), go(other.go), ran(other.ran) {
    *copying = true;
    while (!*go) coir::yield();
  }
  void operator()() const { ++*ran; }
};

}  // namespace

TEST(Pool, a_job_that_was_taken_before_close_runs_even_if_it_comes_after) {
  everywhere([&] {
    std::atomic<bool> copying{false}, go{false};
    std::atomic<int> ran{0};
    Pool<2> pool({.fibers = 2});
    const SlowToCopy job(&copying, &go, &ran);
    Fiber submitter = spawn([&] { expect(pool.submit(job).has_value()); });
    while (!copying) coir::yield();
    Fiber opener = spawn([&, closing = coir::current()] {
      until([&] { return is(pool.try_submit([] {}), ErrorCode::closed); });
      until_parked(closing);
      go = true;
    });
    expect(pool.close().has_value());
    expect(ran == 1);
    expect(submitter.join().has_value() && opener.join().has_value());
  });
}

TEST(Pool, without_fibers_it_refuses) {
  everywhere([&] {
    Pool<1> pool({.fibers = 0});
    expect(is(pool.try_submit([] {}), ErrorCode::invalid));
    Pool<1> large({.fibers = 1, .spawn = {.stack = 1 << 20}});
    expect(is(large.submit([] {}), ErrorCode::invalid));
    expect(pool.close().has_value() && large.close().has_value());
  });
}

namespace {

constexpr int kSubmitters = 4;
constexpr int kJobs = scaled({2'000, 500, 300, 200});

struct Submitters {
  Pool<4>* pool;
  std::atomic<int> taken{0}, ran{0};
  std::atomic<bool> thread_over{false};

  void submit_all() {
    for (int i = 0; i < kJobs; ++i) {
      const auto job = [this] {
        coir::yield();
        ++ran;
      };
      const Outcome outcome = i % 3 == 0 ? pool->try_submit(job) : pool->submit(job, Deadline::after(20s));
      taken += outcome.has_value();
    }
  }
};

}  // namespace

TEST(Pool, jobs_that_fibers_and_threads_submit_side_by_side_run_once) {
  everywhere([&] {
    Pool<4> pool({.fibers = 2});
    Submitters submitters{&pool};
    pthread_t thread;
    if (kManyWorkers) {
      pthread_create(
          &thread, nullptr,
          [](void* argument) -> void* {
            auto& self = *static_cast<Submitters*>(argument);
            self.submit_all();
            self.thread_over = true;
            return nullptr;
          },
          &submitters);
    }
    {
      Nursery nursery;
      for (int i = 0; i < kSubmitters; ++i) static_cast<void>(spawn([&] { submitters.submit_all(); }));
    }
    until([&] { return !kManyWorkers || submitters.thread_over; });
    if (kManyWorkers) pthread_join(thread, nullptr);
    expect(pool.close().has_value());
    expect(submitters.ran == submitters.taken);
  });
}

TEST(Pool, in_a_scope_whose_deadline_passes_its_fibers_end) {
  everywhere([&] {
    bool in_time = false;
    // A busy machine may give it no turn before the deadline.
    while (!in_time) {
      const Outcome outcome = coir::with_timeout(5ms, [&]() -> Outcome {
        Pool<4> pool({.fibers = 2});
        in_time = pool.try_submit([] {}).has_value();
        Outcome slept = coir::sleep(kForEver);
        // No fiber is left to take the jobs that come now.
        expect(until([&] { return !pool.try_submit([] {}); }));
        return slept;
      });
      expect(is(outcome, ErrorCode::timed_out));
    }
  });
}

TEST(Pool, what_a_job_spawns_waits_for_room_while_the_pools_fibers_work) {
  everywhere([&] {
    Pool<1> pool({.fibers = 1});
    std::atomic<int> ran{0};
    expect(pool.submit([&] {
                 // The backlog is full while the only fiber of the pool is here.
                 expect(pool.submit([&] { ++ran; }).has_value());
                 auto other = spawn([&] { expect(pool.submit([&] { ++ran; }).has_value()); });
                 until_parked(other, "backlog");
                 other.detach();
               })
               .has_value());
    expect(until([&] { return ran == 2; }));
    expect(pool.close().has_value());
  });
}

TEST(Pool, a_job_of_the_last_fiber_that_would_wait_for_room_gets_deadlock) {
  everywhere([&] {
    Pool<1> pool({.fibers = 1});
    std::atomic<bool> second{false};
    expect(pool.submit([&] {
                 // The first fills the backlog. No other fiber takes jobs.
                 expect(pool.submit([&] { second = true; }).has_value());
                 expect(is(pool.submit([] {}), ErrorCode::deadlock));
               })
               .has_value());
    until([&] { return second.load(); });  // a closed pool takes no jobs
    expect(pool.close().has_value());
  });
}

}  // namespace pool_test
