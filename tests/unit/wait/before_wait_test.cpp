// Scope::before_wait, which is asked where the owner of a scope is about to park, and cancel_waiting, its counterpart.

#include <CppUTest/TestHarness.h>
#include <coir/cancel_scope.h>
#include <coir/event.h>
#include <coir/fiber.h>
#include <coir/nursery.h>
#include <coir/wait.h>

#include <atomic>

#include "tests/support/everywhere.h"
#include "tests/support/thread.h"
#include "tests/support/until.h"

namespace before_wait_test {

using namespace std::chrono_literals;
using coir::Deadline;
using coir::ErrorCode;
using coir::Event;
using coir::spawn;
using coir::test::until_parked;

namespace {

// Asked is a scope that counts how often it is asked, and gives a reason or none.
struct Asked : coir::detail::Scope {
  int times = 0;
  const char* answer = nullptr;

  Asked() noexcept {
    before_wait = [](Scope& scope) noexcept {
      auto& self = static_cast<Asked&>(scope);
      ++self.times;
      return self.answer;
    };
    coir::detail::enter(*this, Deadline::never());
  }
  ~Asked() { coir::detail::leave(*this); }
};

Deadline soon() {
  return Deadline::after(100s);
}

}  // namespace

TEST_GROUP_BASE(BeforeWait, coir::test::Everywhere) {};

TEST(BeforeWait, is_asked_by_each_wait_that_parks_and_by_no_other) {
  everywhere([&] {
    Asked scope;
    Event open;
    open.set();
    expect(open.wait().has_value() && scope.times == 0);
    coir::yield();
    expect(scope.times == 0);
    expect(coir::sleep(1us).has_value() && scope.times == 1);
    coir::CancelScope inside;
    expect(coir::sleep(1us).has_value() && scope.times == 2);
  });
}

TEST(BeforeWait, a_reason_ends_the_wait_and_cancels_the_scope) {
  everywhere([&] {
    Asked scope;
    scope.answer = "enough";
    Event never;
    const auto waited = never.wait(soon());
    expect(!waited && waited.error() == ErrorCode::cancelled && waited.error().scope == scope.id);
    expect(coir::cancelled() && std::string_view(coir::cancel_reason()) == "enough");
  });
}

#if !COIR_SINGLE_WORKER
TEST(BeforeWait, is_asked_on_a_plain_thread_whose_wait_it_ends) {
  everywhere([&] {
    coir::test::Thread thread([&] {
      Asked scope;
      scope.answer = "enough";
      Event never;
      const auto waited = never.wait(soon());
      expect(!waited && waited.error() == ErrorCode::cancelled && waited.error().scope == scope.id);
      expect(scope.times == 1);
    });
  });
}

TEST(BeforeWait, cancel_waiting_ends_the_wait_of_a_plain_thread) {
  everywhere([&] {
    std::atomic<coir::detail::Scope*> waits = nullptr;
    coir::test::Thread thread([&] {
      Asked scope;
      waits = &scope;
      Event never;
      const auto waited = never.wait(soon());
      expect(!waited && waited.error() == ErrorCode::cancelled);
    });
    coir::test::until([&] { return waits != nullptr && coir::detail::cancel_waiting(*waits, "over"); });
  });
}
#endif

TEST(BeforeWait, is_not_asked_behind_a_shield_nor_by_children) {
  everywhere([&] {
    Asked scope;
    scope.answer = "enough";
    {
      coir::Shield shield(soon());
      expect(coir::sleep(1us).has_value() && scope.times == 0);
    }
    scope.answer = nullptr;
    coir::Nursery nursery;
    nursery.start([&] {
      for (int i = 0; i < 5; ++i) expect(coir::sleep(1us).has_value());
    });
    expect(nursery.join().has_value() && scope.times <= 1);
  });
}

TEST(BeforeWait, cancel_waiting_ends_a_wait_and_nothing_else) {
  everywhere([&] {
    Event ready, never;
    Asked* at = nullptr;
    auto fiber = spawn([&] {
      Asked scope;
      expect(!coir::detail::cancel_waiting(scope, "not yet") && !coir::cancelled());
      at = &scope;
      ready.set();
      const auto waited = never.wait(soon());
      expect(!waited && waited.error() == ErrorCode::cancelled);
      expect(std::string_view(coir::cancel_reason()) == "now");
    });
    expect(ready.wait(soon()).has_value() && until_parked(fiber, "event"));
    expect(coir::detail::cancel_waiting(*at, "now"));
    expect(fiber.join().has_value());
  });
}

// It is ready before the wait has parked, and the scope's owner computes from then on.
TEST(BeforeWait, cancel_waiting_takes_no_wait_that_is_over_for_one) {
  everywhere([&] {
    Asked scope;
    coir::test::Pipe pipe;
    expect(!coir::wait(pipe.reader, coir::Direction::readable, Deadline::after(1us)));
    expect(pipe.put() && coir::test::until_polled());
    expect(coir::wait(pipe.reader, coir::Direction::readable, soon()).has_value());
    expect(!coir::detail::cancel_waiting(scope, "over") && !coir::cancelled());
  });
}

}  // namespace before_wait_test
