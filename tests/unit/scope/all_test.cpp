#include <coir/all.h>

#include <coir/cancel_scope.h>
#include <coir/event.h>
#include <coir/fiber.h>
#include <coir/runtime.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <memory>

#include "tests/support/counted.h"
#include "tests/support/everywhere.h"
#include "tests/support/until.h"

namespace all_test {

using coir::all;
using coir::all_of;
using coir::Error;
using coir::ErrorCode;
using coir::Event;
using coir::Fiber;
using coir::kManyWorkers;
using coir::spawn;
using coir::test::Counted;
using coir::test::Everywhere;
using coir::test::Together;
using coir::test::until;
using coir::test::until_sleepers;
using namespace std::chrono_literals;

namespace {

constexpr auto kForEver = 24h;

// after is `value` once the event has come.
std::expected<int, Error> after(Event& event, int value) {
  if (auto waited = event.wait(); !waited) return std::unexpected(waited.error());
  return value;
}

int before(Event& event, int value) {
  event.set();
  return value;
}

}  // namespace

TEST_GROUP_BASE(All, Everywhere) {};

TEST(All, keeps_the_order_of_the_bodies_whatever_the_order_of_their_ends) {
  everywhere([&] {
    Counted::reset();
    {
      Event second, third;
      const auto results = all([&] { return after(second, 1); },
                               [&]() -> std::expected<int, Error> {
                                 if (auto waited = third.wait(); !waited) return std::unexpected(waited.error());
                                 return before(second, 2);
                               },
                               [&] { return long{before(third, 3)}; }, [] {}, [] { return Counted(5); });
      expect(results.has_value());
      if (!results) return;
      expect(std::get<0>(*results) == 1 && std::get<1>(*results) == 2 && std::get<2>(*results) == 3);
      expect(std::get<4>(*results).number() == 5);
    }
    expect(Counted::ended() == 1 && Counted::alive() == 0);
  });
}

TEST(All, the_bodies_run_side_by_side) {
  everywhere([&] {
    std::atomic<int> inside{0};
    const auto meet = [&inside] {
      ++inside;
      while (inside < 3) coir::yield();
    };
    expect(all(meet, meet, meet).has_value());
  });
}

TEST(All, the_first_failure_cancels_the_rest_and_is_returned) {
  everywhere([&] {
    std::atomic<int> cancelled{0};
    const auto sleeper = [&cancelled]() -> std::expected<int, Error> {
      const auto slept = coir::sleep(kForEver);
      cancelled += !slept && slept.error() == ErrorCode::cancelled;
      return std::unexpected(Error(ErrorCode::busy));
    };
    const auto results = all(
        sleeper,
        []() -> std::expected<void, Error> {
          until_sleepers(2);
          return std::unexpected(Error(ErrorCode::closed));
        },
        sleeper);
    expect(!results && results.error() == ErrorCode::closed);
    expect(cancelled == 2);
  });
}

TEST(All, of_a_cancelled_caller_returns_cancelled_when_the_bodies_have_ended) {
  everywhere([&] {
    std::atomic<int> ended{0};
    Fiber caller = spawn([&] {
      const auto body = [&ended] {
        const auto slept = coir::sleep(kForEver);
        coir::yield();
        ++ended;
        return slept;
      };
      const auto results = all(body, body);
      expect(!results && results.error() == ErrorCode::cancelled && ended == 2);
    });
    until_sleepers(2);
    expect(caller.cancel().has_value() && caller.join().has_value());
  });
}

TEST(All, all_of_maps_items_to_results_within_its_limit) {
  everywhere([&] {
    std::array<int, 40> items;
    std::array<long, 40> results{};
    for (int i = 0; i < 40; ++i) items[static_cast<std::size_t>(i)] = i;
    Together together(4);
    const auto square = [&](int item) -> std::expected<long, Error> {
      together.visit();
      return long{item} * item;
    };
    expect(all_of(std::span(items), std::span(results), square, {.limit = 4}).has_value());
    for (int i = 0; i < 40; ++i) expect(results[static_cast<std::size_t>(i)] == i * i);
    expect(together.most() == 4);
    const auto few = all_of(std::span(items), std::span(results).first(3), square);
    expect(!few && few.error() == ErrorCode::invalid);
  });
}

// A body that was cancelled has not failed, and yet not done its part.
TEST(All, all_of_whose_bodies_were_cancelled_is_no_success) {
  everywhere([&] {
    std::array<int, 8> items{};
    std::array<int, 8> results{};
    const auto cancelled = [&](int) -> std::expected<int, Error> {
      expect(coir::current().cancel().has_value());
      return std::unexpected(coir::check_cancelled().error());
    };
    const auto none = [&](int item) -> std::expected<void, Error> {
      if (const auto done = cancelled(item); !done) return std::unexpected(done.error());
      return {};
    };
    const auto mapped = all_of(std::span(items), std::span(results), cancelled);
    expect(!mapped && mapped.error() == ErrorCode::cancelled);
    const auto called = all_of(std::span(items), none);
    expect(!called && called.error() == ErrorCode::cancelled);
  });
}

TEST(All, all_of_stops_at_the_first_failure) {
  everywhere([&] {
    std::array<int, 100> items{};
    std::atomic<int> calls{0};
    const auto outcome = all_of(std::span(items),
                                [&calls](int) -> std::expected<void, Error> {
                                  if (++calls == 3) return std::unexpected(Error(ErrorCode::closed));
                                  return coir::sleep(kForEver);
                                },
                                {.limit = 3});
    expect(!outcome && outcome.error() == ErrorCode::closed);
    expect(calls <= 4);
  });
}

TEST(All, works_on_a_plain_thread) {
  if (!kManyWorkers) return;
  everywhere([&] {
    struct Shared {
      std::atomic<bool> over{false}, right{false};
    } shared;
    pthread_t thread;
    pthread_create(
        &thread, nullptr,
        [](void* argument) -> void* {
          auto& self = *static_cast<Shared*>(argument);
          Event second;
          const auto results = all([&] { return after(second, 1); }, [&] { return before(second, 2); });
          self.right = results && std::get<0>(*results) == 1 && std::get<1>(*results) == 2;
          self.over = true;
          return nullptr;
        },
        &shared);
    until([&] { return shared.over.load(); });
    pthread_join(thread, nullptr);
    expect(shared.right);
  });
}

}  // namespace all_test
