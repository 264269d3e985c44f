#include <coir/cancellation.h>

#include <coir/event.h>
#include <coir/fiber.h>
#include <coir/nursery.h>
#include <coir/runtime.h>
#include <coir/select.h>
#include <pthread.h>
#include <string.h>

#include <atomic>
#include <optional>

#include "tests/support/everywhere.h"
#include "tests/support/until.h"

namespace cancellation_test {

using coir::CancellationSource;
using coir::CancellationToken;
using coir::CancellationWatch;
using coir::CancelScope;
using coir::Error;
using coir::ErrorCode;
using coir::Fiber;
using coir::kManyWorkers;
using coir::Nursery;
using coir::spawn;
using coir::test::Everywhere;
using coir::test::until;
using namespace std::chrono_literals;

namespace {

constexpr auto kForEver = 24h;

bool is(const std::expected<void, Error>& outcome, ErrorCode code) {
  return !outcome && outcome.error() == code;
}

}  // namespace

TEST_GROUP_BASE(Cancellation, Everywhere) {};

TEST(Cancellation, a_source_cancels_every_scope_that_watches) {
  everywhere([&] {
    CancellationSource source;
    std::atomic<int> arrived{0}, cancelled{0};
    Nursery nursery;
    for (int i = 0; i < 10; ++i) {
      static_cast<void>(spawn([&] {
        {
          CancelScope scope;
          CancellationWatch watch(source.token(), scope);
          ++arrived;
          const auto slept = coir::sleep(kForEver);
          cancelled += is(slept, ErrorCode::cancelled) && scope.caused(slept.error()) &&
                       strcmp(coir::cancel_reason(), "over") == 0;
        }
        cancelled += coir::sleep(1us).has_value();
      }));
    }
    while (arrived < 10) coir::yield();
    source.cancel("over");
    source.cancel("again");
    expect(nursery.join().has_value());
    expect(cancelled == 20);
    expect(source.cancelled() && strcmp(source.reason(), "over") == 0);
  });
}

TEST(Cancellation, a_source_cancels_the_tasks_that_are_watched_and_not_those_that_were) {
  everywhere([&] {
    CancellationSource source;
    coir::Event after;
    Fiber first = spawn([&] { expect(is(coir::sleep(kForEver), ErrorCode::cancelled)); });
    Fiber second = spawn([&] { expect(after.wait().has_value()); });
    Fiber gone = spawn([] {});
    CancellationWatch watch(source.token(), first);
    CancellationWatch of_one_gone(source.token(), gone);
    {
      CancellationWatch brief(source.token(), second);
    }
    expect(gone.join().has_value());
    source.cancel();
    expect(first.join().has_value());
    after.set();
    expect(second.join().has_value());
  });
}

TEST(Cancellation, watches_end_in_any_order_and_what_has_ended_is_let_be) {
  everywhere([&] {
    CancellationSource source;
    CancelScope scope;
    std::optional<CancellationWatch> watches[3];
    for (const int last : {0, 1, 2}) {
      for (auto& watch : watches) watch.emplace(source.token(), scope);
      for (int i = 0; i < 3; ++i) watches[(last + 1 + i) % 3].reset();
      for (auto& watch : watches) watch.emplace(source.token(), scope);
      for (int i = 3; i > 0; --i) watches[(last + i) % 3].reset();
    }
    source.cancel();
    expect(!scope.cancelled());
  });
}

TEST(Cancellation, a_later_watch_is_cancelled_at_once) {
  everywhere([&] {
    CancellationSource source;
    const CancellationToken token = source.token();
    expect(!token.cancelled());
    source.cancel();
    expect(token.cancelled() && !CancellationToken().cancelled());
    CancelScope scope;
    CancellationWatch watch(token, scope);
    CancellationWatch nothing(CancellationToken(), scope);
    expect(is(coir::sleep(kForEver), ErrorCode::cancelled));
  });
}

TEST(Cancellation, from_a_plain_thread_reaches_fibers_while_watches_come_and_go) {
  if (!kManyWorkers) return;
  everywhere([&] {
    for (int round = 0; round < 20; ++round) {
      struct Shared {
        CancellationSource source;
        std::atomic<int> turns{0};
      } shared;
      CancellationSource& source = shared.source;
      std::atomic<int> ended{0};
      Nursery nursery;
      for (int i = 0; i < 8; ++i) {
        static_cast<void>(spawn([&] {
          while (!source.cancelled()) {
            CancelScope scope;
            CancellationWatch watch(source.token(), scope);
            ++shared.turns;
            static_cast<void>(coir::sleep(20us));
          }
          expect(coir::sleep(1us).has_value());
          ++ended;
        }));
      }
      pthread_t thread;
      pthread_create(
          &thread, nullptr,
          [](void* argument) -> void* {
            auto& self = *static_cast<Shared*>(argument);
            until([&] { return self.turns >= 20; });
            self.source.cancel();
            return nullptr;
          },
          &shared);
      expect(nursery.join().has_value());
      pthread_join(thread, nullptr);
      expect(ended == 8);
    }
  });
}

TEST(Cancellation, a_select_with_a_case_for_the_source_is_told_by_it_though_its_scope_is_watched) {
  everywhere([&] {
    CancellationSource source;
    std::atomic<bool> told{false};
    Nursery nursery;
    const auto waiting = spawn([&] {
      CancelScope scope;
      CancellationWatch watch(source.token(), scope);
      const auto won = coir::select({coir::Case::cancelled(source.token()), coir::Case::after(kForEver)});
      told = won && won->index == 0;
    });
    coir::test::until_parked(waiting);
    source.cancel("over");
    expect(nursery.join().has_value());
    expect(told.load());
  });
}

}  // namespace cancellation_test
