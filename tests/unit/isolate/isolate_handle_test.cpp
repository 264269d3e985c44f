#include <coir/isolate.h>

#include <CppUTest/TestHarness.h>
#include <coir/blocking.h>
#include <coir/cancel_scope.h>
#include <coir/fiber.h>
#include <coir/ledger.h>
#include <errno.h>
#include <stdio.h>

#include <atomic>
#include <string_view>

#include "tests/support/everywhere.h"
#include "tests/support/thread.h"

namespace isolate_handle_test {

using namespace std::chrono_literals;
using coir::Deny;
using coir::Error;
using coir::ErrorCode;
using coir::FiberStatus;
using coir::Isolate;
using coir::IsolatePort;

namespace {

constexpr auto kWait = [](IsolatePort& port) {
  while (port.receive<int>()) {
  }
};

bool is_too_late(const char* reason) {
  return reason != nullptr && std::string_view(reason) == "too late";
}

template <class T>
bool is_stale(const std::expected<T, Error>& outcome) {
  return !outcome && outcome.error() == ErrorCode::stale;
}

bool is_refused(const std::expected<Isolate, Error>& isolate) {
  return !isolate && isolate.error() == ErrorCode::system && isolate.error().sys == EPERM;
}

bool skipped(const char* promise) {
  auto isolate = Isolate::spawn([](IsolatePort&) {}, {.deny = Deny::isolates});
  if (isolate || isolate.error() != ErrorCode::unsupported) return false;
  printf("ok - %s # SKIP this kernel, or emulator, has no seccomp filters\n", promise);
  return true;
}

}  // namespace

TEST_GROUP_BASE(IsolateHandle, coir::test::Everywhere) {};

TEST(IsolateHandle, status_goes_from_running_to_how_it_ended) {
  everywhere([&] {
    auto good = Isolate::spawn(kWait);
    expect(good && good->status() == FiberStatus::running && !good->done());
    good->close();
    expect(good->await().has_value());
    expect(good->status() == FiberStatus::succeeded && good->done());

    auto bad = Isolate::spawn([](IsolatePort& port) -> std::expected<int, Error> {
      static_cast<void>(port.receive<int>());
      return std::unexpected(Error{ErrorCode::limit});
    });
    expect(bad && bad->status() == FiberStatus::running);
    bad->close();
    expect(bad->await().error() == ErrorCode::limit);
    expect(bad->status() == FiberStatus::failed && bad->done());
  });
}

TEST(IsolateHandle, done_tells_that_await_need_not_wait) {
  everywhere([&] {
    auto isolate = Isolate::spawn([](IsolatePort&) { return 7; });
    expect(isolate.has_value());
    while (!isolate->done()) coir::yield();
    expect(isolate->await<int>(coir::Deadline::now()).value_or(0) == 7);
    expect(isolate->done());  // the result is gone, the isolate has still ended
  });
}

TEST(IsolateHandle, a_cancelled_isolate_that_computes_on_is_cancelling) {
  everywhere([&] {
    std::atomic<bool> seen{false};
    auto isolate = Isolate::spawn([&seen](IsolatePort&) {
      while (!seen) coir::yield();
    });
    expect(isolate && isolate->status() == FiberStatus::running);
    expect(isolate->cancel().has_value());
    expect(isolate->status() == FiberStatus::cancelling && !isolate->done());
    seen = true;
    expect(isolate->await().has_value() && isolate->status() == FiberStatus::succeeded);
  });
}

TEST(IsolateHandle, the_first_reason_for_a_cancellation_is_told_inside) {
  everywhere([&] {
    auto isolate = Isolate::spawn([](IsolatePort& port) {
      const bool none = port.cancel_reason() == nullptr && coir::cancel_reason() == nullptr;
      static_cast<void>(port.send(none));
      bool told = port.receive<int>().error() == ErrorCode::cancelled;
      told = told && is_too_late(port.cancel_reason());
      // Without a scheduler nothing but the port knows of the owner.
      const char* const reason = coir::cancel_reason();
      return told && (coir::kManyWorkers ? is_too_late(reason) : reason == nullptr);
    });
    expect(isolate && isolate->receive<bool>().value_or(false));
    expect(isolate->cancel("too late").has_value());
    expect(isolate->cancel("even later").has_value());
    expect(isolate->await<bool>().value_or(false));
  });
}

TEST(IsolateHandle, fibers_of_the_isolate_are_told_the_reason) {
  if (!coir::kManyWorkers) return;  // there it has none
  everywhere([&] {
    auto isolate = Isolate::spawn([](IsolatePort& port) {
      auto child = coir::spawn([] {
        const bool ended = coir::sleep(1h).error() == ErrorCode::cancelled;
        return ended && is_too_late(coir::cancel_reason());
      });
      static_cast<void>(port.send(1));
      coir::Shield shield(coir::Deadline::never());
      return child.await().value_or(false);
    });
    expect(isolate && isolate->receive<int>().has_value());
    expect(isolate->cancel("too late").has_value());
    expect(isolate->await<bool>().value_or(false));
  });
}

TEST(IsolateHandle, calls_of_a_moved_from_handle_are_stale) {
  everywhere([&] {
    auto made = Isolate::spawn(kWait);
    expect(made.has_value());
    Isolate moved(std::move(*made));
    expect(is_stale(made->send(1)));
    expect(is_stale(made->receive<int>()));
    expect(is_stale(made->cancel("why")));
    expect(is_stale(made->await()));
    expect(is_stale(made->await<int>()));
    expect(made->status() == FiberStatus::empty && !made->done());
    made->close();
    expect(moved.status() == FiberStatus::running && moved.send(1).has_value());
  });
}

TEST(IsolateHandle, an_isolate_that_another_takes_the_place_of_ends) {
  const std::size_t before = coir::account::channels.used();
  everywhere([&] {
    auto first = Isolate::spawn(kWait);
    const std::size_t one = coir::account::channels.used();
    auto second = Isolate::spawn(kWait);
    expect(first && second);
    *first = std::move(*second);
    expect(coir::account::channels.used() == one);
    expect(second->status() == FiberStatus::empty);
    expect(first->status() == FiberStatus::running && first->send(1).has_value());
  });
  LONGS_EQUAL(before, coir::account::channels.used());
}

TEST(IsolateHandle, deny_isolates_refuses_further_ones_and_nothing_else) {
  if (skipped("an isolate that is denied isolates starts none")) return;
  everywhere([&] {
    auto isolate = Isolate::spawn(
        [](IsolatePort&) {
          const bool refused = is_refused(Isolate::spawn(kWait));
          FILE* const file = fopen("/dev/null", "re");
          if (file != nullptr) fclose(file);
          return refused && file != nullptr;
        },
        {.deny = Deny::isolates});
    expect(isolate && isolate->await<bool>().value_or(false));
    expect(Isolate::spawn(kWait).has_value());  // the owner was denied nothing
  });
}

TEST(IsolateHandle, deny_isolates_holds_on_threads_that_the_isolate_starts) {
  if (skipped("isolates are denied to threads of the isolate")) return;
  everywhere([&] {
    auto isolate = Isolate::spawn(
        [](IsolatePort&) {
          bool thread_refused = false;
          {
            coir::test::Thread thread([&] { thread_refused = is_refused(Isolate::spawn(kWait)); });
          }
          auto refused = coir::blocking([] { return is_refused(Isolate::spawn(kWait)); });
          return thread_refused && refused.value_or(false);
        },
        {.deny = Deny::isolates});
    expect(isolate && isolate->await<bool>().value_or(false));
  });
}

TEST(IsolateHandle, other_denials_leave_isolates_allowed) {
  if (skipped("a denial of files leaves isolates allowed")) return;
  everywhere([&] {
    auto isolate =
        Isolate::spawn([](IsolatePort&) { return Isolate::spawn(kWait).has_value(); }, {.deny = Deny::process});
    expect(isolate && isolate->await<bool>().value_or(false));
  });
}

}  // namespace isolate_handle_test
