#include <coir/race.h>

#include <coir/fiber.h>
#include <coir/runtime.h>

#include <atomic>
#include <memory>

#include "tests/support/counted.h"
#include "tests/support/everywhere.h"
#include "tests/support/until.h"

namespace race_test {

using coir::any;
using coir::Error;
using coir::ErrorCode;
using coir::Fiber;
using coir::race;
using coir::spawn;
using coir::test::Counted;
using coir::test::Everywhere;
using coir::test::until;
using coir::test::until_sleepers;
using namespace std::chrono_literals;

namespace {

constexpr auto kForEver = 24h;

using IntOutcome = std::expected<int, Error>;

IntOutcome fail(ErrorCode code) {
  return std::unexpected(Error(code));
}

// Ended lets a body come behind the end of another.
class Ended {
 public:
  void tell() {
    fiber_ = coir::current();
    told_ = true;
  }
  void wait() {
    until([&] { return told_ && !fiber_.alive(); });
  }

 private:
  coir::FiberRef fiber_;
  std::atomic<bool> told_{false};
};

}  // namespace

TEST_GROUP_BASE(Race, Everywhere) {};

TEST(Race, the_first_to_end_wins_and_the_losers_have_ended_when_it_returns) {
  everywhere([&] {
    std::atomic<int> cancelled{0};
    const auto loser = [&cancelled] {
      const auto slept = coir::sleep(kForEver);
      for (int i = 0; i < 5; ++i) coir::yield();
      cancelled += !slept && slept.error() == ErrorCode::cancelled;
      return 1;
    };
    const IntOutcome first = race(
        loser,
        [] {
          until_sleepers(2);
          return 2;
        },
        loser);
    expect(first && *first == 2);
    expect(cancelled == 2);
    expect(coir::stats().fibers_alive == 1);
    expect(coir::sleep(1us).has_value());
  });
}

TEST(Race, a_failure_that_comes_first_wins_too) {
  everywhere([&] {
    const IntOutcome first = race([] { return fail(ErrorCode::closed); },
                                  []() -> IntOutcome {
                                    static_cast<void>(coir::sleep(kForEver));
                                    return 1;
                                  });
    expect(!first && first.error() == ErrorCode::closed);
  });
}

TEST(Race, of_bodies_without_a_value_tells_that_one_ended) {
  everywhere([&] { expect(race([] {}, [] { static_cast<void>(coir::sleep(kForEver)); }).has_value()); });
}

TEST(Race, values_that_the_losers_return_are_destroyed) {
  everywhere([&] {
    Counted::reset();
    {
      const auto body = [] {
        coir::yield();
        return Counted(3);
      };
      const auto first = race(body, body, body);
      expect(first && first->number() == 3);
    }
    expect(Counted::alive() == 0 && Counted::ended() == 3);
  });
}

TEST(Race, any_passes_over_failures) {
  everywhere([&] {
    Ended failed;
    const IntOutcome first = any(
        [&] {
          failed.tell();
          return fail(ErrorCode::closed);
        },
        [&]() -> IntOutcome {
          failed.wait();
          return 7;
        },
        []() -> IntOutcome {
          static_cast<void>(coir::sleep(kForEver));
          return 8;
        });
    expect(first && *first == 7);
  });
}

TEST(Race, any_of_failures_only_returns_the_first) {
  everywhere([&] {
    Ended other;
    const IntOutcome first = any(
        [&] {
          other.wait();
          return fail(ErrorCode::closed);
        },
        [&] {
          other.tell();
          return fail(ErrorCode::busy);
        });
    expect(!first && first.error() == ErrorCode::busy);
  });
}

TEST(Race, of_a_cancelled_caller_cancels_everybody_and_returns_cancelled) {
  everywhere([&] {
    std::atomic<int> ended{0};
    Fiber caller = spawn([&] {
      const auto body = [&ended] {
        const auto slept = coir::sleep(kForEver);
        ++ended;
        return slept;
      };
      const auto first = race(body, body, body);
      expect(!first && first.error() == ErrorCode::cancelled && ended == 3);
    });
    until_sleepers(3);
    expect(caller.cancel().has_value() && caller.join().has_value());
  });
}

TEST(Race, one_inside_another_is_cancelled_with_it) {
  everywhere([&] {
    std::atomic<int> cancelled{0};
    const auto sleeper = [&cancelled] {
      cancelled += !coir::sleep(kForEver);
      return 1;
    };
    const IntOutcome first = race([&] { return race(sleeper, sleeper); },
                                  [] {
                                    until_sleepers(2);
                                    return 2;
                                  });
    expect(first && *first == 2 && cancelled == 2);
  });
}

}  // namespace race_test
