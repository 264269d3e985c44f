// Deadlines and cancel scopes without fibers.

#include <CppUTest/TestHarness.h>
#include <coir/cancel_scope.h>
#include <coir/wait.h>

#include "core/src/wait/wait_several.h"
#include "tests/support/pipe.h"

namespace serial_scope_test {

using namespace std::chrono_literals;
using coir::CancelScope;
using coir::Deadline;
using coir::Direction;
using coir::ErrorCode;
using coir::Shield;
using coir::test::Pipe;

TEST_GROUP(SerialScope) {
  Pipe pipe;
};

TEST(SerialScope, its_deadline_ends_a_wait_and_the_error_tells_whose) {
  CancelScope outer(Deadline::after(2ms));
  {
    CancelScope inner(Deadline::after(1h));
    const auto waited = coir::wait(pipe.reader, Direction::readable);
    CHECK_TRUE(!waited && waited.error() == ErrorCode::timed_out);
    CHECK_TRUE(outer.caused(waited.error()));
    CHECK_FALSE(inner.caused(waited.error()));
  }
  CHECK_FALSE(coir::check_cancelled().has_value());
  Shield shield(Deadline::after(1h));
  CHECK_TRUE(coir::check_cancelled().has_value());
  const auto waited = coir::wait(pipe.reader, Direction::readable, Deadline::after(1ms));
  CHECK_TRUE(!waited && waited.error() == ErrorCode::timed_out && waited.error().scope == 0);
}

// A reader that never waits calls pause_between between two reads.
TEST(SerialScope, a_reader_that_never_waits_learns_that_it_has_ended) {
  CancelScope scope(Deadline::now());
  const auto going = coir::pause_between(Deadline::never());
  CHECK_TRUE(!going && going.error() == ErrorCode::timed_out && scope.caused(going.error()));
}

TEST(SerialScope, cancelled_it_fails_every_wait_at_once) {
  CancelScope scope;
  scope.cancel("over");
  const auto waited = coir::wait(pipe.reader, Direction::readable);
  CHECK_TRUE(!waited && waited.error() == ErrorCode::cancelled && scope.caused(waited.error()));
  STRCMP_EQUAL("over", coir::cancel_reason());
}

TEST(SerialScope, with_timeout_works) {
  const auto late = coir::with_timeout(1ms, [&] { return coir::wait(pipe.reader, Direction::readable); });
  CHECK_TRUE(!late && late.error() == ErrorCode::timed_out && late.error().scope == 0);
  pipe.put();
  CHECK_TRUE(coir::with_timeout(1h, [&] { return coir::wait(pipe.reader, Direction::readable); }).has_value());
}

}  // namespace serial_scope_test
