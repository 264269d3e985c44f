#include <coir/broadcast.h>

#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/runtime.h>
#include <coir/select.h>

#include <atomic>
#include <memory>

#include "tests/support/everywhere.h"
#include "tests/support/mixed.h"
#include "tests/support/thread.h"
#include "tests/support/until.h"

namespace broadcast_test {

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
using coir::test::until_parked;
using namespace std::chrono_literals;
using coir::Account;
using coir::Broadcast;
using coir::Case;
using coir::Subscription;
using coir::WhenSlow;

namespace {

// Story is a message that owns memory: every copy has its own.
struct Story {
  explicit Story(std::uint32_t number) : own(std::make_unique<std::uint32_t>(number)), same(number) {}
  Story(const Story& other) : Story(other.same) {}
  Story(Story&&) noexcept = default;

  bool whole() const { return own != nullptr && *own == same; }

  std::unique_ptr<std::uint32_t> own;
  std::uint32_t same;
};

}  // namespace

TEST_GROUP_BASE(Broadcast, Everywhere) {};

TEST(Broadcast, everybody_who_has_subscribed_gets_a_copy_in_order) {
  everywhere([&] {
    Broadcast<int> news;
    expect(news.publish(0) == 0u);
    Subscription<int> first(news), second(news);
    expect(news.subscribers() == 2 && news.publish(1) == 2u);
    {
      Subscription<int> third(news);
      expect(news.publish(2) == 3u && third.receive() == 2);
    }
    expect(news.publish(3) == 2u);
    for (int i = 1; i <= 3; ++i) expect(first.receive() == i && second.receive() == i);
    expect(is(first.receive(Deadline::now()), ErrorCode::timed_out));
    expect(first.missed() == 0);
  });
}

TEST(Broadcast, a_slow_subscriber_loses_the_oldest) {
  everywhere([&] {
    Broadcast<int> news;
    Subscription<int> slow(news, {.capacity = 3, .when_slow = WhenSlow::drop_oldest});
    for (int i = 0; i < 10; ++i) expect(news.publish(i) == 1u);
    expect(slow.missed() == 7 && slow.waiting() == 3);
    for (int i = 7; i < 10; ++i) expect(slow.receive() == i);
  });
}

TEST(Broadcast, or_misses_what_is_new_and_is_told_how_much) {
  everywhere([&] {
    Broadcast<int> news;
    Subscription<int> slow(news, {.capacity = 3, .when_slow = WhenSlow::count}), quick(news, {.capacity = 32});
    for (int i = 0; i < 10; ++i) expect(news.publish(i) == (i < 3 ? 2u : 1u));
    expect(slow.missed() == 7);
    for (int i = 0; i < 3; ++i) expect(slow.receive() == i);
    expect(news.publish(10) == 2u && slow.receive() == 10);
    expect(quick.waiting() == 11 && quick.missed() == 0);
  });
}

TEST(Broadcast, or_is_disconnected_once_it_has_drained_what_it_had) {
  everywhere([&] {
    Broadcast<int> news;
    Subscription<int> slow(news, {.capacity = 2, .when_slow = WhenSlow::disconnect}), quick(news);
    for (int i = 0; i < 4; ++i) static_cast<void>(news.publish(i));
    expect(slow.receive() == 0 && slow.receive() == 1);
    expect(is(slow.receive(), ErrorCode::closed) && slow.missed() == 1);
    for (int i = 0; i < 4; ++i) expect(quick.receive() == i);
  });
}

TEST(Broadcast, close_lets_subscribers_drain_and_refuses_to_publish) {
  everywhere([&] {
    Broadcast<int> news;
    Subscription<int> feed(news);
    Fiber waiting = spawn([&] {
      Subscription<int> own(news);
      expect(is(own.receive(), ErrorCode::closed));
    });
    until_parked(waiting, "receive");
    Subscription<int> late(news);
    news.close();
    expect(is(news.publish(1), ErrorCode::closed));
    expect(is(feed.receive(), ErrorCode::closed) && is(late.receive(), ErrorCode::closed));
    expect(waiting.join().has_value());
    Subscription<int> too_late(news);
    expect(is(too_late.receive(), ErrorCode::closed));
  });
}

TEST(Broadcast, a_subscription_is_a_case_of_a_select) {
  everywhere([&] {
    Broadcast<int> news;
    Subscription<int> feed(news);
    int story = 0;
    auto won = coir::select({Case::receive(feed, story), Case::otherwise()});
    expect(won && won->index == 1);
    Fiber publisher = spawn([&] { expect(news.publish(8) == 1u); });
    won = coir::select({Case::receive(feed, story), Case::after(24h)});
    expect(won && won->index == 0 && story == 8);
    expect(publisher.join().has_value());
  });
}

TEST(Broadcast, a_cancelled_fiber_still_publishes_and_unsubscribes) {
  everywhere([&] {
    Broadcast<Story> news;
    Subscription<Story> feed(news);
    Fiber fiber = spawn([&] {
      Subscription<Story> own(news);
      expect(is(own.receive(), ErrorCode::cancelled));
      expect(news.publish(Story(1)) == 2u);
    });
    coir::yield();
    expect(fiber.cancel() && fiber.join());
    expect(feed.receive()->whole() && news.subscribers() == 1);
  });
}

TEST(Broadcast, a_subscriber_whose_account_has_no_room_misses_the_message) {
  Account account("test broadcast");
  account.set_ceiling(16);
  everywhere([&] {
    Broadcast<int> news;
    Subscription<int> poor(news, {.account = &account}), rich(news);
    expect(news.publish(1) == 1u && poor.missed() == 1 && rich.receive() == 1);
  });
}

TEST(Broadcast, stress) {
  Mixed mixed("broadcast", 8);
  Broadcast<Story> news;
  mixed.run([&](Random& random) {
    if (random.below(2) == 0) {
      for (std::uint32_t i = random.below(6); i > 0; --i) {
        mixed.expect(news.publish(Story(random.below(1'000'000))).has_value());
      }
    } else {
      Subscription<Story> feed(news,
                               {.capacity = 1 + random.below(4), .when_slow = static_cast<WhenSlow>(random.below(3))});
      for (std::uint32_t i = random.below(5); i > 0; --i) {
        if (const auto message = feed.receive(Deadline::after(random.micros(200)))) {
          mixed.expect(message->whole());
        } else {
          mixed.expect(message.error() == ErrorCode::timed_out || message.error() == ErrorCode::cancelled ||
                       message.error() == ErrorCode::closed);
        }
      }
    }
  });
  mixed.expect(news.subscribers() == 0);
  mixed.check();
}

}  // namespace broadcast_test
