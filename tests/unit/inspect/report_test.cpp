// The report of a run that ends as it should not names the fiber, where it was spawned, and where the call is.

#include <CppUTest/TestHarness.h>
#include <coir/condition.h>
#include <coir/fiber.h>
#include <coir/inspect.h>
#include <coir/nursery.h>
#include <coir/runtime.h>
#include <coir/wait_group.h>
#include <string.h>
#include <unistd.h>

#include <source_location>

#include "tests/support/child.h"
#include "tests/support/until.h"

namespace report_test {

using coir::Error;
using coir::ErrorCode;
using coir::Nursery;
using coir::spawn;
using coir::Task;
using coir::test::ChildEnd;
using coir::test::in_child;
using coir::test::until;
using coir::operator""_KiB;
using namespace std::chrono_literals;

namespace {

using Outcome = std::expected<void, Error>;

consteval int line_of(const std::source_location& where = std::source_location::current()) {
  return static_cast<int>(where.line());
}

// wrote tells whether the child wrote `text` followed by a place in this file.
bool wrote(const ChildEnd& end, const char* text, int line) {
  return end.wrote(StringFromFormat("%s%s:%d", text, std::source_location::current().file_name(), line).asCharString());
}

bool aborted(const ChildEnd& end) {
  return end.signal != 0 || end.status > 1;
}

// run_of runs `body` with one worker in a child.
template <class Body>
ChildEnd run_of(Body body) {
  return in_child([&body] { return coir::run({.workers = 1}, body); });
}

Outcome fail(ErrorCode code) {
  return std::unexpected(Error(code));
}

}  // namespace

TEST_GROUP(Report) {};

TEST(Report, a_run_that_ends_with_an_error_names_the_fiber_and_where_it_was_spawned) {
  constexpr int kSpawned = line_of() + 2;
  const ChildEnd end = run_of([] {
    spawn({.name = "reader"}, [] { return fail(ErrorCode::truncated); }).detach();
    static_cast<void>(coir::sleep(1h));
  });
  LONGS_EQUAL(1, end.status);
  LONGS_EQUAL(1, end.lines());
  CHECK_TRUE(end.wrote("the run ended with an error: truncated, of fiber "));
  CHECK_TRUE(wrote(end, " \"reader\", spawned at ", kSpawned));
}

TEST(Report, the_first_fiber_is_named_too) {
  const ChildEnd end = run_of([] { return fail(ErrorCode::closed); });
  LONGS_EQUAL(1, end.status);
  CHECK_TRUE(end.wrote("the run ended with an error: closed, of fiber "));
  CHECK_TRUE(end.wrote(" \"main\", spawned at "));
}

TEST(Report, a_failure_that_a_nursery_passes_on_is_still_its_childs) {
  constexpr int kSpawned = line_of() + 4;
  const ChildEnd end = run_of([] {
    Nursery outer;
    Nursery inner;
    inner.start({.name = "deep"}, [] { return fail(ErrorCode::queue_full); });
  });
  LONGS_EQUAL(1, end.status);
  CHECK_TRUE(end.wrote("the run ended with an error: queue full, of fiber "));
  CHECK_TRUE(wrote(end, " \"deep\", spawned at ", kSpawned));
}

TEST(Report, a_failure_of_invalid_is_not_taken_for_the_environments) {
  const ChildEnd end = run_of([] { return fail(ErrorCode::invalid); });
  LONGS_EQUAL(1, end.status);
  CHECK_TRUE(end.wrote("the run ended with an error: invalid, of fiber "));
}

TEST(Report, a_join_inside_with_timeout_ends_at_once_with_the_fiber_and_the_place) {
  constexpr int kSpawned = line_of() + 2;
  const ChildEnd end = run_of([] {
    spawn({.name = "fetcher"}, [] {
      Nursery nursery;
      nursery.start([] { return coir::sleep(1h); });
      static_cast<void>(coir::with_timeout(1h, [&] { return nursery.join(); }));
    }).detach();
  });
  CHECK_TRUE(aborted(end));
  LONGS_EQUAL(1, end.lines());
  CHECK_TRUE(end.wrote("coir: a nursery is joined by another fiber, or inside a scope"));
  CHECK_TRUE(wrote(end, " \"fetcher\", spawned at ", kSpawned));
  CHECK_TRUE(wrote(end, "; at ", kSpawned + 3));
}

TEST(Report, every_misuse_names_the_fiber_and_where_it_is_cheap_the_place) {
  constexpr int kDone = line_of() + 1;
  const ChildEnd done = run_of([] { coir::WaitGroup().done(); });
  CHECK_TRUE(aborted(done) && done.wrote("\"main\", spawned at ") && wrote(done, "; at ", kDone));
  constexpr int kDeferred = line_of() + 7;
  const ChildEnd deferred = run_of([] {
    Nursery nursery;
    struct {
      char bytes[200];
    } large{};
    nursery.defer([large] { static_cast<void>(large); });
    nursery.defer([large] { static_cast<void>(large); });
  });
  CHECK_TRUE(aborted(deferred) && deferred.wrote("\"main\", spawned at ") && wrote(deferred, "; at ", kDeferred));
  constexpr int kWaited = line_of() + 6;
  const ChildEnd waited = run_of([] {
    coir::Mutex mutex;
    coir::Condition changed;
    auto held = mutex.lock();
    held->unlock();
    static_cast<void>(changed.wait(*held));
  });
  CHECK_TRUE(aborted(waited) && waited.wrote("\"main\", spawned at ") && wrote(waited, "; at ", kWaited));
  const ChildEnd left = run_of([] {
    auto* const outer = new coir::CancelScope;
    coir::CancelScope inner;
    delete outer;
  });
  CHECK_TRUE(aborted(left) && left.wrote("\"main\", spawned at "));
}

#if defined(_LIBCPP_VERSION)  // another library's abort is its own
TEST(Report, a_value_that_an_expected_does_not_hold_names_error_and_fiber_on_a_small_stack) {
  constexpr int kSpawned = line_of() + 2;
  const ChildEnd end = run_of([] {
    spawn({.name = "hopeful", .stack = 8_KiB}, [] {
      const std::expected<int, Error> none = std::unexpected(Error(ErrorCode::closed));
      return none.value() == 7 ? Outcome() : fail(ErrorCode::limit);
    }).detach();
  });
  CHECK_TRUE(aborted(end));
  LONGS_EQUAL(1, end.lines());
  CHECK_TRUE(end.wrote("coir: value() of an error: closed, called at 0x"));
  CHECK_TRUE(wrote(end, " \"hopeful\", spawned at ", kSpawned));
}
#endif

TEST(Report, a_plain_thread_is_called_one) {
  const ChildEnd end = in_child([] {
    coir::WaitGroup().done();
    return 0;
  });
  CHECK_TRUE(aborted(end) && end.wrote("(a plain thread; at "));
}

TEST(Report, a_failure_whose_handle_is_held_is_shown_in_dumps) {
  constexpr int kSpawned = line_of() + 2;
  const ChildEnd end = run_of([] {
    Task<void> held = spawn({.name = "writer"}, [] { return fail(ErrorCode::limit); });
    Task<int> fine = spawn({.name = "fine"}, [] { return 7; });
    until([&] { return held.done() && fine.done(); });
    coir::dump_fibers(2);
    static_cast<void>(held.await());
    static_cast<void>(write(2, "awaited\n", 8));
    coir::dump_fibers(2);
    return fine.await().value() == 7 ? 0 : 3;
  });
  LONGS_EQUAL(0, end.status);
  CHECK_TRUE(wrote(end, "\"writer\" failed, not awaited: limit reached; spawned at ", kSpawned));
  CHECK_FALSE(end.wrote("\"fine\""));
  const char* const after = strstr(end.output, "awaited\n");
  CHECK_TRUE(after != nullptr && strstr(after, "\"writer\"") == nullptr);
}

TEST(Report, a_deadlock_shows_the_failures_that_nobody_has_asked_for) {
  const ChildEnd end = run_of([] {
    Task<void> held = spawn({.name = "writer"}, [] { return fail(ErrorCode::limit); });
    static_cast<void>(coir::sleep_until(coir::Deadline::never()));
    static_cast<void>(held.await());
  });
  LONGS_EQUAL(1, end.status);
  CHECK_TRUE(end.wrote("coir: deadlock"));
  CHECK_TRUE(end.wrote("\"writer\" failed, not awaited: limit reached"));
}

}  // namespace report_test
