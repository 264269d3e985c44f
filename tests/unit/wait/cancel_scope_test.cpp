#include <coir/cancel_scope.h>

#include <coir/channel.h>
#include <coir/event.h>
#include <coir/fiber.h>
#include <coir/group.h>
#include <coir/nursery.h>
#include <coir/runtime.h>
#include <coir/wait.h>
#include <signal.h>
#include <string.h>

#include <atomic>

#include "tests/support/child.h"
#include "tests/support/everywhere.h"
#include "tests/support/pipe.h"
#include "tests/support/until.h"

namespace cancel_scope_test {

using coir::CancelScope;
using coir::Deadline;
using coir::Direction;
using coir::Error;
using coir::ErrorCode;
using coir::Fiber;
using coir::Nursery;
using coir::Shield;
using coir::spawn;
using coir::Task;
using coir::with_timeout;
using coir::test::Everywhere;
using coir::test::Pipe;
using coir::test::until;
using coir::test::until_parked;
using namespace std::chrono_literals;

namespace {

using Outcome = std::expected<void, Error>;

bool is(const Outcome& outcome, ErrorCode code) {
  return !outcome && outcome.error() == code;
}

constexpr auto kForEver = 24h;

// The waits that a scope ends, in a fiber.
Outcome wait_in(int which, Pipe& pipe) {
  switch (which) {
    case 0:
      return coir::sleep(kForEver);
    case 1:
      return coir::wait(pipe.reader, Direction::readable);
    case 2: {
      Fiber other = spawn({.detached = true}, [] { static_cast<void>(coir::sleep(kForEver)); });
      const Outcome joined = other.join();
      static_cast<void>(other.cancel());
      return joined;
    }
    default: {
      Outcome slept;
      Nursery nursery;
      static_cast<void>(spawn([&slept] { slept = coir::sleep(kForEver); }));
      const Outcome joined = nursery.join();
      return joined ? slept : joined;  // the child may have ended before the join
    }
  }
}
constexpr int kWaits = 4;

}  // namespace

TEST_GROUP_BASE(CancelScope, Everywhere) {};

TEST(CancelScope, its_deadline_ends_every_kind_of_wait_inside) {
  everywhere([&] {
    for (int which = 0; which < kWaits; ++which) {
      Pipe pipe;
      CancelScope scope(Deadline::after(2ms));
      const Outcome waited = wait_in(which, pipe);
      expect(is(waited, ErrorCode::timed_out) && scope.caused(waited.error()));
      expect(scope.deadline().passed());
      // And every later one at once.
      const Outcome again = wait_in(which, pipe);
      expect(is(again, ErrorCode::timed_out) && scope.caused(again.error()));
    }
    expect(coir::sleep(1us).has_value());
  });
}

TEST(CancelScope, cancelled_from_elsewhere_it_ends_every_kind_of_wait_within_one_round) {
  for (int which = 0; which < kWaits; ++which) {
    bool within_one_round = false;
    CHECK_TRUE(coir::run_until_idle({.workers = 1}, [&] {
                 Pipe pipe;
                 bool ended = false;
                 CancelScope* inside = nullptr;
                 Fiber fiber = spawn([&] {
                   CancelScope scope;
                   inside = &scope;
                   const Outcome waited = wait_in(which, pipe);
                   ended = is(waited, ErrorCode::cancelled) && scope.caused(waited.error());
                   expect(strcmp(coir::cancel_reason(), "enough") == 0);
                 });
                 for (int i = 0; i < 4; ++i) coir::yield();
                 inside->cancel("enough");
                 for (int i = 0; i < (which == 3 ? 3 : 1); ++i) coir::yield();
                 within_one_round = ended;
                 expect(fiber.join().has_value());
               }).has_value());
    CHECK_TRUE(within_one_round);
  }
  check();
}

TEST(CancelScope, inside_another_it_ends_with_the_outer_deadline_and_the_error_tells_whose) {
  everywhere([&] {
    CancelScope outer(Deadline::after(2ms));
    {
      CancelScope inner(Deadline::after(1h));
      expect(inner.deadline() == outer.deadline());
      const Outcome slept = coir::sleep(kForEver);
      expect(is(slept, ErrorCode::timed_out) && outer.caused(slept.error()) && !inner.caused(slept.error()));
    }
    CancelScope second(Deadline::after(1h));
    const Outcome slept = coir::sleep(kForEver);
    expect(is(slept, ErrorCode::timed_out) && outer.caused(slept.error()));
  });
}

TEST(CancelScope, an_earlier_inner_deadline_is_its_own_and_leaves_the_outer_one_in_force) {
  everywhere([&] {
    CancelScope outer(Deadline::after(1h));
    {
      CancelScope inner(Deadline::after(1ms));
      const Outcome slept = coir::sleep(kForEver);
      expect(is(slept, ErrorCode::timed_out) && inner.caused(slept.error()));
    }
    expect(coir::sleep(1ms).has_value());
    expect(outer.ended().has_value());
  });
}

TEST(CancelScope, a_calls_own_earlier_deadline_is_told_as_its_own) {
  everywhere([&] {
    Pipe pipe;
    CancelScope scope(Deadline::after(1h));
    const Outcome waited = coir::wait(pipe.reader, Direction::readable, Deadline::after(1ms));
    expect(is(waited, ErrorCode::timed_out) && waited.error().scope == 0);
  });
}

TEST(CancelScope, the_outermost_cancelled_scope_is_the_one_told) {
  everywhere([&] {
    CancelScope outer;
    CancelScope inner;
    inner.cancel();
    Outcome slept = coir::sleep(kForEver);
    expect(is(slept, ErrorCode::cancelled) && inner.caused(slept.error()));
    expect(inner.cancelled() && !outer.cancelled());
    outer.cancel();
    slept = coir::sleep(kForEver);
    expect(is(slept, ErrorCode::cancelled) && outer.caused(slept.error()));
  });
}

TEST(CancelScope, children_of_nurseries_inside_are_bound_by_it_and_detached_ones_are_not) {
  everywhere([&] {
    std::atomic<int> ended{0};
    std::atomic<bool> free{false};
    coir::Event past;
    CancelScope scope(Deadline::after(3ms));
    Nursery nursery;
    for (int i = 0; i < 3; ++i) {
      static_cast<void>(spawn([&] {
        const Outcome slept = coir::sleep(kForEver);
        ended += is(slept, ErrorCode::timed_out) && scope.caused(slept.error());
      }));
    }
    Fiber detached = spawn({.detached = true}, [&] { free = past.wait().has_value(); });
    const Outcome joined = nursery.join();
    expect(ended == 3 && scope.deadline().passed());
    past.set();
    expect(joined.has_value() || scope.caused(joined.error()));
    Shield shield(Deadline::never());
    expect(detached.join().has_value() && free);
  });
}

TEST(CancelScope, cancelled_it_ends_the_waits_of_all_descendants_while_their_owners_are_busy) {
  everywhere([&] {
    coir::Channel<int> never, told;
    CancelScope* scope = nullptr;
    coir::Event waiting;
    std::atomic<bool> over{false};
    const auto wait_in_vain = [&] {
      const Error ended = never.receive().error();
      expect(ended == ErrorCode::cancelled);
      Shield shield(Deadline::never());
      expect(told.send(0).has_value());
    };
    Fiber owner = spawn([&] {
      CancelScope mine;
      scope = &mine;
      CancelScope inner;  // one without a nursery between
      Nursery nursery;
      nursery.start(wait_in_vain);
      nursery.start([&] {  // a child that opens more, and is busy as well
        coir::Group group;
        expect(bool{group.start(wait_in_vain)});
        expect(bool{group.start([&] {
          CancelScope deeper;
          Nursery deepest;
          deepest.start(wait_in_vain);
          while (!over) coir::yield();
        })});
        while (!over) coir::yield();
        static_cast<void>(group.join());
      });
      for (int i = 0; i < 20; ++i) coir::yield();  // so that the children wait, mostly
      waiting.set();
      while (!over) coir::yield();  // not once does an owner wait or look for a mark
      static_cast<void>(nursery.join());
    });
    expect(waiting.wait().has_value());
    scope->cancel("from outside");
    for (int i = 0; i < 3; ++i) expect(told.receive(Deadline::after(20s)).has_value());
    over = true;
    expect(owner.join().has_value());
  });
}

TEST(CancelScope, cancelled_it_leaves_the_shielded_waits_of_descendants_alone) {
  everywhere([&] {
    coir::Event open, shielded, done;
    CancelScope* scope = nullptr;
    Fiber owner = spawn([&] {
      CancelScope mine;
      scope = &mine;
      Nursery outer;
      outer.start([&] {
        Shield shield(Deadline::never());
        Nursery inside;
        inside.start([&] {
          shielded.set();
          expect(open.wait().has_value());  // a child of a nursery that a shield surrounds
        });
        expect(inside.join().has_value());
        done.set();
      });
      static_cast<void>(outer.join());
    });
    expect(shielded.wait().has_value());
    scope->cancel();
    open.set();
    expect(done.wait(Deadline::after(20s)).has_value());
    expect(owner.join().has_value());
  });
}

TEST(CancelScope, check_cancelled_tells_a_computation) {
  everywhere([&] {
    expect(coir::check_cancelled().has_value());
    CancelScope scope(Deadline::after(1ms));
    Outcome check;
    do {
      check = coir::check_cancelled();
    } while (check);
    expect(is(check, ErrorCode::timed_out) && scope.caused(check.error()));
    scope.cancel("no more");
    check = coir::check_cancelled();
    expect(is(check, ErrorCode::cancelled) && scope.caused(check.error()));
    expect(coir::cancelled() && strcmp(coir::cancel_reason(), "no more") == 0);
  });
}

TEST(CancelScope, a_fibers_own_cancellation_has_a_reason_too) {
  everywhere([&] {
    Fiber fiber = spawn([&] {
      expect(is(coir::sleep(kForEver), ErrorCode::cancelled));
      expect(coir::cancel_reason() != nullptr && strcmp(coir::cancel_reason(), "old age") == 0);
      expect(is(coir::check_cancelled(), ErrorCode::cancelled));
    });
    coir::yield();
    expect(fiber.status() == coir::FiberStatus::running);
    expect(fiber.cancel("old age").has_value());
    expect(fiber.join().has_value());
    expect(fiber.status() == coir::FiberStatus::empty);
    expect(coir::cancel_reason() == nullptr);
  });
}

TEST(CancelScope, a_shield_keeps_cancellation_and_deadlines_out_until_it_ends) {
  everywhere([&] {
    std::atomic<bool> inside{false}, cancelled{false};
    Fiber fiber = spawn([&] {
      CancelScope scope(Deadline::after(1ms));
      {
        Shield shield(Deadline::after(1h));
        inside = true;
        do {
          expect(coir::sleep(2ms).has_value());
        } while (!cancelled);
        expect(!coir::cancelled() && coir::check_cancelled().has_value());
      }
      expect(is(coir::sleep(kForEver), ErrorCode::cancelled));
    });
    until([&] { return inside.load(); });
    until_parked(fiber, "sleep");
    expect(fiber.cancel().has_value());
    cancelled = true;
    expect(fiber.join().has_value());
  });
}

TEST(CancelScope, a_shield_has_a_deadline_of_its_own_and_scopes_inside_work) {
  everywhere([&] {
    Fiber fiber = spawn([&] {
      static_cast<void>(coir::current().cancel());
      Shield shield(Deadline::after(2ms));
      CancelScope* scope;
      Fiber other;
      {
        CancelScope inner;
        scope = &inner;
        other = spawn({.detached = true}, [scope] { scope->cancel(); });
        const Outcome slept = coir::sleep(kForEver);
        expect(!slept && (inner.caused(slept.error()) || slept.error() == ErrorCode::timed_out));
        while (!other.done()) coir::yield();
      }
      expect(is(coir::sleep(kForEver), ErrorCode::timed_out));
    });
    expect(fiber.join().has_value());
  });
}

TEST(CancelScope, shutdown_does_not_reach_behind_a_shield) {
  std::atomic<bool> cleaned{false};
  CHECK_TRUE(coir::run_until_idle({.workers = 1}, [&] {
               coir::Event after;
               Fiber fiber = spawn([&] {
                 Shield shield(Deadline::after(1h));
                 cleaned = after.wait() && coir::sleep(1us);
               });
               until_parked(fiber, "event");
               coir::shutdown();
               after.set();
               until([&] { return fiber.done(); });
             }).has_value());
  CHECK_TRUE(cleaned);
}

TEST(CancelScope, with_timeout_returns_what_the_body_returned_or_that_it_timed_out) {
  everywhere([&] {
    const auto value = with_timeout(1h, [] { return 7; });
    expect(value && *value == 7);
    const auto late = with_timeout(1ms, [] {
      static_cast<void>(coir::sleep(kForEver));
      return 7;
    });
    expect(!late && late.error() == ErrorCode::timed_out && late.error().scope == 0);
    expect(is(with_timeout(1ms, [] { static_cast<void>(coir::sleep(kForEver)); }), ErrorCode::timed_out));
    expect(with_timeout(1h, [] {}).has_value());
    const Outcome slept = with_timeout(1ms, [] { return coir::sleep(kForEver); });
    expect(is(slept, ErrorCode::timed_out) && slept.error().scope == 0);
    const std::expected<long, Error> failed =
        with_timeout(1h, []() -> std::expected<long, Error> { return std::unexpected(Error(ErrorCode::closed)); });
    expect(!failed && failed.error() == ErrorCode::closed);
  });
}

TEST(CancelScope, with_timeout_lets_an_outcome_through_that_comes_late) {
  everywhere([&] {
    const auto late = with_timeout(1ms, []() -> std::expected<int, Error> {
      static_cast<void>(coir::sleep(kForEver));
      return 7;
    });
    expect(late && *late == 7);
    const auto failed = with_timeout(1ms, []() -> std::expected<int, Error> {
      static_cast<void>(coir::sleep(kForEver));
      return std::unexpected(Error(ErrorCode::closed));
    });
    expect(!failed && failed.error() == ErrorCode::closed);
  });
}

TEST(CancelScope, with_timeout_tells_an_outer_deadline_from_its_own) {
  everywhere([&] {
    Outcome inner;
    const Outcome outer = with_timeout(2ms, [&] {
      inner = with_timeout(1h, [] { return coir::sleep(kForEver); });
      return inner;
    });
    expect(is(inner, ErrorCode::timed_out) && inner.error().scope != 0);
    expect(is(outer, ErrorCode::timed_out) && outer.error().scope == 0);
  });
}

// Ids have 16 bits; scopes in force together still have different ids.
TEST(CancelScope, a_nursery_never_takes_an_outer_scopes_end_for_its_own) {
  CHECK_TRUE(coir::run_until_idle({.workers = 1}, [&] {
               CancelScope outer;
               for (int i = 0; i < 65'534; ++i) const CancelScope other;
               Nursery nursery;
               nursery.start([] { static_cast<void>(coir::sleep(kForEver)); });
               outer.cancel("from outside");
               expect(is(nursery.join(), ErrorCode::cancelled));
             }).has_value());
  check();
}

namespace {

// nest puts up that many shields and calls the innermost's body.
template <class Body>
void nest(int shields, const Body& body) {
  if (shields == 0) return body();
  const Shield shield(Deadline::never());
  nest(shields - 1, body);
}

}  // namespace

TEST(CancelScope, fifteen_shields_may_be_nested_and_one_more_is_an_error) {
  CHECK_TRUE(coir::run_until_idle({.workers = 1}, [&] {
               expect(coir::current().cancel().has_value());
               nest(15, [&] { expect(coir::sleep(1us).has_value()); });
               expect(is(coir::sleep(1us), ErrorCode::cancelled));
             }).has_value());
  check();
  const auto end = coir::test::in_child([] { return coir::run({.workers = 1}, [] { nest(16, [] {}); }); });
  LONGS_EQUAL(SIGABRT, end.signal);
  CHECK_TRUE(end.wrote("coir: more than 15 shields are nested"));
}

}  // namespace cancel_scope_test
