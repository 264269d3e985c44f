#include <coir/nursery.h>

#include <coir/cancel_scope.h>
#include <coir/event.h>
#include <coir/group.h>
#include <coir/runtime.h>
#include <coir/wait.h>
#include <pthread.h>

#include <atomic>
#include <optional>
#include <string_view>

#include "core/src/wait/park.h"
#include "tests/support/counted.h"
#include "tests/support/everywhere.h"
#include "tests/support/until.h"

namespace nursery_test {

using coir::Deadline;
using coir::Error;
using coir::ErrorCode;
using coir::Fiber;
using coir::kManyWorkers;
using coir::Nursery;
using coir::operator""_KiB;
using coir::run_until_idle;
using coir::spawn;
using coir::Task;
using coir::test::Counted;
using coir::test::Everywhere;
using coir::test::Together;
using coir::test::until;
using coir::test::until_parked;
using coir::test::until_sleepers;
using namespace std::chrono_literals;

namespace {

using Outcome = std::expected<void, Error>;

bool is(const Outcome& outcome, ErrorCode code) {
  return !outcome && outcome.error() == code;
}

constexpr auto kForEver = 24h;

Outcome fail(ErrorCode code) {
  return std::unexpected(Error(code));
}

// A child that waits until it is cancelled, and counts that.
auto sleeper(std::atomic<int>& cancelled) {
  return [&cancelled] { cancelled += is(coir::sleep(kForEver), ErrorCode::cancelled); };
}

void spawn_deep(int depth, std::atomic<int>& ended) {
  if (depth > 0) return spawn_deep(depth - 1, ended);
  static_cast<void>(spawn([&ended] {
    coir::yield();
    ++ended;
  }));
}

}  // namespace

TEST_GROUP_BASE(Nursery, Everywhere) {};

TEST(Nursery, is_left_when_the_last_child_has_ended) {
  everywhere([&] {
    std::atomic<int> ended{0};
    {
      const coir::FiberRef owner = coir::current();
      Nursery nursery;
      for (int i = 0; i < 50; ++i) {
        nursery.start([&ended, owner, i] {
          if (i % 3 == 0) until_parked(owner, "nursery");
          coir::yield();
          ++ended;
        });
      }
    }
    expect(ended == 50);
    expect(coir::stats().fibers_alive == 1);
  });
}

TEST(Nursery, an_empty_one_is_left_at_once) {
  everywhere([&] {
    Nursery nursery;
    expect(nursery.join().has_value());
    expect(nursery.join().has_value());
  });
}

TEST(Nursery, takes_what_is_spawned_without_naming_one_at_any_depth_of_calls) {
  everywhere([&] {
    std::atomic<int> ended{0};
    {
      Nursery nursery;
      spawn_deep(5, ended);
      spawn_deep(0, ended);
    }
    expect(ended == 2);
  });
}

TEST(Nursery, is_inherited_by_the_children_of_its_children) {
  everywhere([&] {
    std::atomic<int> ended{0};
    {
      const coir::FiberRef owner = coir::current();
      Nursery nursery;
      nursery.start([&ended, owner] {
        static_cast<void>(spawn([&ended, owner] {
          until_parked(owner, "nursery");
          static_cast<void>(spawn([&ended] {
            coir::yield();
            ++ended;
          }));
        }));
      });
    }
    expect(ended == 1);
  });
}

TEST(Nursery, is_no_longer_the_current_one_after_its_scope) {
  everywhere([&] {
    std::atomic<int> ended{0};
    std::atomic<bool> go{false};
    {
      Nursery outer;
      {
        Nursery inner;
      }
      Nursery second;
      expect(second.join().has_value());
      static_cast<void>(spawn([&] {
        while (!go) coir::yield();
        ++ended;
      }));
      expect(outer.running() == 1);
      go = true;
    }
    expect(ended == 1);
  });
}

TEST(Nursery, a_detached_fiber_belongs_to_the_root) {
  everywhere([&] {
    static std::atomic<bool> go, ended;
    go = ended = false;
    {
      Nursery nursery;
      static_cast<void>(spawn({.detached = true}, [] {
        while (!go) coir::yield();
        ended = true;
      }));
      nursery.start({.detached = true}, [] {});
      expect(nursery.running() == 0);
    }
    expect(!ended);
    go = true;
    while (!ended) coir::yield();
  });
}

TEST(Nursery, the_first_failure_cancels_the_siblings_and_is_returned_once) {
  everywhere([&] {
    std::atomic<int> cancelled{0};
    Nursery nursery;
    for (int i = 0; i < 5; ++i) nursery.start(sleeper(cancelled));
    nursery.start([]() -> Outcome {
      until_sleepers(6);
      return fail(ErrorCode::closed);
    });
    nursery.start([]() -> Outcome {
      static_cast<void>(coir::sleep(kForEver));
      return fail(ErrorCode::busy);
    });
    expect(is(nursery.join(), ErrorCode::closed));
    expect(cancelled == 5);
    expect(nursery.join().has_value());
    expect(coir::sleep(1us).has_value());
  });
}

TEST(Nursery, a_failure_ends_the_owners_own_wait_inside) {
  everywhere([&] {
    Nursery nursery;
    nursery.start([] { return fail(ErrorCode::closed); });
    const auto slept = coir::sleep(kForEver);
    expect(is(slept, ErrorCode::cancelled) && slept.error().scope != 0);
    expect(is(nursery.join(), ErrorCode::closed));
  });
}

TEST(Nursery, a_failure_reaches_the_children_of_nurseries_inside) {
  everywhere([&] {
    std::atomic<int> cancelled{0};
    Nursery nursery;
    nursery.start([&cancelled] {
      Nursery inner;
      for (int i = 0; i < 3; ++i) static_cast<void>(spawn(sleeper(cancelled)));
    });
    nursery.start([] {
      until_sleepers(3);
      return fail(ErrorCode::closed);
    });
    expect(is(nursery.join(), ErrorCode::closed));
    expect(cancelled == 3);
  });
}

TEST(Nursery, an_awaited_child_is_taken_out_and_not_reported) {
  everywhere([&] {
    std::atomic<int> ended{0};
    coir::Event awaited;
    Nursery nursery;
    nursery.start([&] {
      if (!awaited.wait()) return;
      ++ended;
    });
    Task<int> running = nursery.spawn([owner = coir::current()]() -> std::expected<int, Error> {
      until_parked(owner, "join");
      return std::unexpected(Error(ErrorCode::closed));
    });
    const auto first = running.await();
    expect(!first && first.error() == ErrorCode::closed);
    Task<int> over =
        nursery.spawn([]() -> std::expected<int, Error> { return std::unexpected(Error(ErrorCode::busy)); });
    while (!over.done()) coir::yield();
    expect(over.status() == coir::FiberStatus::failed);
    const auto second = over.await();
    expect(!second && second.error() == ErrorCode::busy);
    awaited.set();
    expect(nursery.join().has_value());
    expect(ended == 1);
  });
}

TEST(Nursery, a_held_childs_failure_waits_for_its_handle_until_the_scope_is_left) {
  everywhere([&] {
    std::atomic<int> cancelled{0};
    Nursery nursery;
    Task<void> held = nursery.spawn([] { return fail(ErrorCode::closed); });
    while (!held.done()) coir::yield();
    expect(coir::sleep(1ms).has_value());
    nursery.start(sleeper(cancelled));
    expect(is(nursery.join(), ErrorCode::closed));
    expect(cancelled == 1);
    expect(is(held.await(), ErrorCode::closed));
    expect(is(held.await(), ErrorCode::stale));
  });
}

TEST(Nursery, a_failure_that_its_end_finds_wakes_all_whom_it_cancels) {
  everywhere([&] {
    std::atomic<int> cancelled{0};
    Task<void> held;
    Nursery nursery;
    coir::Group below;
    below.start(sleeper(cancelled));
    // A child's own child, whose handle outlives both: nobody takes the failure over before the nursery is left.
    nursery.start([&] { held = spawn([] { return fail(ErrorCode::closed); }); });
    expect(is(nursery.join(), ErrorCode::closed));
    static_cast<void>(below.join());
    expect(cancelled == 1);
  });
}

TEST(Nursery, a_dropped_handle_leaves_the_failure_to_the_nursery) {
  everywhere([&] {
    Nursery nursery;
    {
      Task<void> held = nursery.spawn([] { return fail(ErrorCode::closed); });
      while (!held.done()) coir::yield();
    }
    expect(is(coir::sleep(kForEver), ErrorCode::cancelled));
    expect(is(nursery.join(), ErrorCode::closed));
  });
}

TEST(Nursery, a_held_result_is_there_after_the_nursery) {
  everywhere([&] {
    Counted::reset();
    {
      Task<Counted> kept;
      {
        Nursery nursery;
        kept = nursery.spawn([] { return Counted(7); });
      }
      expect(kept.done());
      const auto value = kept.await();
      expect(value && value->number() == 7);
    }
    expect(Counted::ended() == 1 && Counted::alive() == 0);
  });
}

TEST(Nursery, cancelling_it_is_no_failure) {
  everywhere([&] {
    std::atomic<int> cancelled{0};
    Nursery nursery;
    for (int i = 0; i < 3; ++i) nursery.start(sleeper(cancelled));
    nursery.start([] { return coir::sleep(kForEver); });
    coir::yield();
    nursery.cancel("enough");
    nursery.start(sleeper(cancelled));
    expect(nursery.join().has_value());
    expect(cancelled == 4);
  });
}

TEST(Nursery, a_cancelled_owner_cancels_the_children_and_waits_for_them) {
  everywhere([&] {
    std::atomic<int> cancelled{0}, ended{0};
    Outcome outcome;
    Fiber owner = spawn([&] {
      Nursery nursery;
      for (int i = 0; i < 3; ++i) nursery.start(sleeper(cancelled));
      nursery.start([&ended] {
        static_cast<void>(coir::sleep(kForEver));
        for (int i = 0; i < 10; ++i) coir::yield();
        ++ended;
      });
      outcome = nursery.join();
    });
    until_parked(owner, "nursery");
    expect(owner.cancel().has_value());
    expect(owner.join().has_value());
    expect(is(outcome, ErrorCode::cancelled));
    expect(cancelled == 3 && ended == 1);
  });
}

TEST(Nursery, at_the_limit_spawn_parks_and_try_spawn_refuses) {
  everywhere([&] {
    std::atomic<int> ended{0};
    Together together(3);
    Nursery nursery{{.limit = 3}};
    const auto body = [&] {
      together.visit();
      ++ended;
    };
    for (int i = 0; i < 20; ++i) expect(nursery.spawn(body).started());
    expect(nursery.join().has_value());
    expect(ended == 20 && together.most() == 3);

    Nursery full{{.limit = 2}};
    std::atomic<bool> go{false};
    const auto hold = [&go] { until([&go] { return go.load(); }); };
    expect(full.try_spawn(hold).started() && full.try_spawn(hold).started());
    Fiber refused = full.try_spawn(hold);
    expect(!refused.started() && is(refused.join(), ErrorCode::limit));
    go = true;
    expect(full.spawn([] {}).started());
    expect(full.join().has_value());
  });
}

TEST(Nursery, cancelling_the_owner_reaches_its_children_while_the_owner_computes) {
  everywhere([&] {
    std::atomic<int> cancelled{0}, waiting{0};
    const auto child = [&] {
      ++waiting;
      cancelled += is(coir::sleep(kForEver), ErrorCode::cancelled);
      expect(coir::cancel_reason() != nullptr && std::string_view(coir::cancel_reason()) == "enough");
    };
    Fiber owner = spawn([&] {
      Nursery nursery;
      nursery.start(child);
      nursery.start([&] {
        Nursery inner;
        inner.start(child);
        expect(is(inner.join(), ErrorCode::cancelled));
      });
      coir::Group group;
      group.start(child);
      {
        const coir::Shield shield(Deadline::never());
        Nursery shielded;
        shielded.start([&] { expect(coir::sleep(1ms).has_value() && !coir::cancelled()); });
        // It computes: it yields, and never waits.
        while (cancelled < 3) coir::yield();
        expect(shielded.join().has_value());
      }
      std::atomic<bool> late{false};
      nursery.start([&] { late = is(coir::sleep(kForEver), ErrorCode::cancelled); });
      Nursery opened_later;
      opened_later.start([&] { expect(is(coir::sleep(kForEver), ErrorCode::cancelled)); });
      while (!late || opened_later.running() != 0) coir::yield();
    });
    until([&] { return waiting == 3; });
    expect(owner.cancel("enough").has_value());
    expect(owner.join().has_value());
    expect(cancelled == 3);
  });
}

// A wait for room ends when a child ends, and the waiting ones do not.
TEST(Nursery, the_last_child_that_would_wait_for_room_gets_deadlock) {
  everywhere([&] {
    Nursery nursery{{.limit = 2}};
    std::atomic<bool> served{false};
    coir::Event full;
    const Fiber first = nursery.spawn({.name = "first"}, [&] {
      expect(full.wait().has_value());
      nursery.start([&] { served = true; });
      expect(served || nursery.running() <= 2);
    });
    nursery.start({.name = "second"}, [&] {
      full.set();
      until_parked(first, "admission");
      Fiber refused = spawn([] {});
      expect(!refused.started() && is(refused.join(), ErrorCode::deadlock));
      expect(!nursery.try_spawn([] {}).started());
      coir::Shield shield(Deadline::never());
      Fiber other = coir::spawn({.detached = true}, [] {});
      expect(other.join().has_value());
    });
    expect(nursery.join().has_value());
    expect(served);
  });
}

TEST(Nursery, an_only_child_that_starts_another_gets_deadlock) {
  everywhere([&] {
    Nursery nursery{{.limit = 1}};
    nursery.start([&] {
      const Error error = nursery.spawn([] {}).join().error();
      expect(error == ErrorCode::deadlock);
      nursery.start([] {});  // fails the nursery
    });
    expect(is(nursery.join(), ErrorCode::deadlock));
  });
}

TEST(Nursery, waiters_at_the_limit_are_served_in_order_and_may_be_cancelled) {
  everywhere([&] {
    Nursery nursery{{.limit = 1}};
    std::atomic<bool> go{false};
    nursery.start([&go] {
      while (!go) coir::yield();
    });
    int order[3] = {}, next = 0;
    Fiber waiting[3];
    for (int i = 0; i < 3; ++i) {
      std::atomic<coir::FiberControl*> control{nullptr};
      waiting[i] = spawn({.detached = true}, [&, i] {
        control = coir::running_fiber();
        Fiber child = nursery.spawn([&order, &next, i] { order[next++] = i; });
        expect(child.started() == (i != 1));
        if (i == 1) expect(is(child.join(), ErrorCode::cancelled));
      });
      while (control == nullptr || control.load()->wait_kind.load() != coir::WaitKind::admission) coir::yield();
    }
    expect(waiting[1].cancel().has_value() && waiting[1].join().has_value());
    go = true;
    expect(waiting[0].join().has_value() && waiting[2].join().has_value());
    expect(nursery.join().has_value());
    expect(next == 2 && order[0] == 0 && order[1] == 2);
  });
}

TEST(Nursery, after_it_was_joined_it_takes_nobody) {
  everywhere([&] {
    Nursery nursery;
    expect(nursery.join().has_value());
    Fiber late = nursery.spawn([] {});
    expect(!late.started() && is(late.join(), ErrorCode::closed));
  });
}

TEST(Nursery, a_join_by_a_deadline_cancels_the_children_and_waits_for_them) {
  everywhere([&] {
    std::atomic<int> cancelled{0};
    std::atomic<bool> ended{false};
    Nursery nursery;
    nursery.start(sleeper(cancelled));
    nursery.start([&ended] {
      static_cast<void>(coir::sleep(kForEver));
      for (int i = 0; i < 5; ++i) coir::yield();
      ended = true;
    });
    const Outcome joined = nursery.join(Deadline::after(1ms));
    expect(is(joined, ErrorCode::timed_out) && joined.error().scope == 0);
    expect(cancelled == 1 && ended);
  });
}

TEST(Nursery, a_join_by_a_deadline_that_is_kept_tells_the_childrens_outcome) {
  everywhere([&] {
    Nursery fine;
    fine.start([] { coir::yield(); });
    expect(fine.join(Deadline::after(1h)).has_value());
    Nursery failing;
    failing.start([] { return fail(ErrorCode::closed); });
    expect(is(failing.join(Deadline::after(1h)), ErrorCode::closed));
    // On a busy machine the deadline may pass before the join: then the child has ended, and there is nothing to wait for.
    Outcome late;
    for (auto patience = 1ms; late.has_value(); patience *= 2) {
      const coir::CancelScope around(Deadline::after(patience));
      Nursery outlived;
      outlived.start([] { static_cast<void>(coir::sleep(kForEver)); });
      late = outlived.join(Deadline::after(1h));
      expect(late.has_value() || (is(late, ErrorCode::timed_out) && around.caused(late.error())));
    }
  });
}

TEST(Nursery, a_start_without_a_stack_fails_it_unless_it_is_asked) {
  everywhere([&] {
    {
      Nursery nursery;
      const auto refused = nursery.start({.stack = 128_KiB}, [] {});
      expect(!refused && refused.error() == ErrorCode::invalid);
      expect(nursery.join().has_value());
    }
    std::atomic<int> cancelled{0};
    Nursery nursery;
    nursery.start(sleeper(cancelled));
    nursery.start({.stack = 128_KiB}, [] {});
    nursery.start(sleeper(cancelled));
    expect(is(nursery.join(), ErrorCode::invalid));
    expect(cancelled == 2);
  });
}

TEST(Nursery, a_child_that_could_not_start_in_a_cancelled_one_is_no_failure) {
  everywhere([&] {
    std::atomic<int> cancelled{0};
    Nursery nursery{{.limit = 1}};
    nursery.start(sleeper(cancelled));
    nursery.cancel();
    nursery.start([&cancelled] { cancelled = 5; });  // its owner's wait for room is cancelled, too
    expect(nursery.join().has_value());
    expect(cancelled == 1);
  });
}

TEST(Nursery, a_start_that_found_no_room_in_time_names_the_scope_that_ended_it) {
  everywhere([&] {
    std::atomic<int> cancelled{0};
    Nursery nursery{{.limit = 1}};
    nursery.start(sleeper(cancelled));
    coir::CancelScope soon(Deadline::after(1ms));
    const auto late = nursery.start([] {});
    expect(!late && late.error() == ErrorCode::timed_out && soon.caused(late.error()));
    nursery.cancel();
  });
}

TEST(Nursery, deferred_calls_run_after_the_children_in_reverse_order) {
  everywhere([&] {
    int order[4] = {}, next = 0;
    std::atomic<int> ended{0};
    bool after = false;
    {
      Nursery nursery;
      nursery.defer([&] { order[next++] = 1; });
      nursery.on_success([&] { order[next++] = 2; });
      nursery.on_error([&](Error) { order[next++] = 9; });
      nursery.defer([&] {
        order[next++] = 3;
        after = ended == 1;
      });
      nursery.start([&ended, owner = coir::current()] {
        until_parked(owner, "nursery");
        ++ended;
      });
    }
    expect(next == 3 && order[0] == 3 && order[1] == 2 && order[2] == 1 && after);
  });
}

TEST(Nursery, on_error_may_handle_the_failure) {
  everywhere([&] {
    int order[4] = {}, next = 0;
    Nursery nursery;
    nursery.defer([&] { order[next++] = 1; });
    nursery.on_success([&] { order[next++] = 2; });
    nursery.on_error([&](Error error) { order[next++] = error == ErrorCode::busy ? 3 : 9; });
    nursery.on_error([&](Error error) -> Outcome {
      order[next++] = error == ErrorCode::closed ? 4 : 9;
      return fail(ErrorCode::busy);
    });
    nursery.on_success([&] { order[next++] = 9; });
    nursery.start([] { return fail(ErrorCode::closed); });
    expect(nursery.join().has_value());
    expect(next == 4 && order[0] == 4 && order[1] == 3 && order[2] == 2 && order[3] == 1);
  });
}

TEST(Nursery, deferred_calls_run_in_a_cancelled_fiber_too) {
  everywhere([&] {
    bool ran = false, told = false, cleaned = false;
    Fiber owner = spawn([&] {
      Nursery nursery;
      nursery.defer([&] {
        ran = true;
        coir::Shield shield(Deadline::after(5s));
        cleaned = coir::sleep(1ms).has_value();
      });
      nursery.on_error([&](Error error) { told = error == ErrorCode::cancelled; });
      nursery.start([] { static_cast<void>(coir::sleep(kForEver)); });
    });
    until_parked(owner, "nursery");
    expect(owner.cancel().has_value() && owner.join().has_value());
    expect(ran && told && cleaned);
  });
}

TEST(Nursery, a_failure_that_its_end_finds_goes_to_the_one_around_it) {
  everywhere([&] {
    Nursery outer;
    {
      Nursery inner;
      static_cast<void>(spawn([] { return fail(ErrorCode::closed); }));
    }
    expect(is(coir::sleep(kForEver), ErrorCode::cancelled));
    expect(is(outer.join(), ErrorCode::closed));
  });
}

TEST(Nursery, the_roots_first_failure_ends_the_run) {
  for (const unsigned workers : {1u, 2u}) {
    std::atomic<int> cancelled{0};
    const auto outcome = run_until_idle({.workers = workers}, [&] {
      static_cast<void>(spawn(sleeper(cancelled)));
      static_cast<void>(spawn([] {
        coir::yield();
        return fail(ErrorCode::closed);
      }));
      cancelled += is(coir::sleep(kForEver), ErrorCode::cancelled);
    });
    CHECK_TRUE(is(outcome, ErrorCode::closed));
    LONGS_EQUAL(2, cancelled);
  }
}

TEST(Nursery, the_first_fiber_fails_as_every_other) {
  const auto outcome = run_until_idle({.workers = 1}, [] { return fail(ErrorCode::closed); });
  CHECK_TRUE(is(outcome, ErrorCode::closed));
  LONGS_EQUAL(1, coir::run({.workers = 1}, [] { return fail(ErrorCode::closed); }));
  LONGS_EQUAL(0, coir::run({.workers = 1}, []() -> Outcome { return {}; }));
  LONGS_EQUAL(3, coir::run({.workers = 1}, [] { return 3; }));
}

namespace {

struct Outsider {
  std::atomic<bool> over{false};
  std::atomic<int> ended{0}, cancelled{0};
  Outcome first, second;

  static void* main(void* argument) {
    auto& self = *static_cast<Outsider*>(argument);
    {
      Nursery nursery{{.limit = 4}};
      for (int i = 0; i < 40; ++i) {
        static_cast<void>(spawn([&self] {
          coir::yield();
          ++self.ended;
        }));
      }
      self.first = nursery.join();
    }
    {
      Nursery nursery;
      for (int i = 0; i < 3; ++i) nursery.start(sleeper(self.cancelled));
      nursery.start([] { return fail(ErrorCode::closed); });
      self.second = nursery.join();
    }
    self.over = true;
    return nullptr;
  }
};

}  // namespace

TEST(Nursery, of_a_plain_thread_owns_fibers_all_the_same) {
  if (!kManyWorkers) return;
  everywhere([&] {
    Outsider outsider;
    pthread_t thread;
    pthread_create(&thread, nullptr, Outsider::main, &outsider);
    until([&] { return outsider.over.load(); });
    pthread_join(thread, nullptr);
    expect(outsider.first.has_value() && outsider.ended == 40);
    expect(is(outsider.second, ErrorCode::closed) && outsider.cancelled == 3);
  });
}

}  // namespace nursery_test
