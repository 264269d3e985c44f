#include <coir/must.h>

#include <CppUTest/TestHarness.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include <memory>

#include "tests/support/both_sides.h"
#include "tests/support/child.h"

namespace must_test {

using coir::Error;
using coir::ErrorCode;
using coir::must;

TEST_GROUP_BASE(Must, coir::test::BothSides) {};

TEST(Must, returns_the_value) {
  both_sides([&] {
    expect(must(std::expected<int, Error>(7)) == 7);
    must(std::expected<void, Error>());
    const auto moved = must(std::expected<std::unique_ptr<int>, Error>(std::unique_ptr<int>()));
    expect(moved == nullptr);
  });
}

TEST(Must, ends_the_process_by_a_line_with_the_error_and_the_place) {
  constexpr unsigned kLine = __LINE__ + 2;
  const auto plain = coir::test::in_child(
      [] { return must(std::expected<int, Error>(std::unexpected(Error(ErrorCode::timed_out)))); });
  LONGS_EQUAL(SIGABRT, plain.signal);
  CHECK_TRUE(plain.wrote("coir: what must succeed has failed: timed out ("));
  char place[32];
  snprintf(place, sizeof place, "must_test.cpp:%u)", kLine);
  CHECK_TRUE(plain.wrote(place));
  const auto kernel = coir::test::in_child([] {
    must(std::expected<void, Error>(std::unexpected(Error::from_errno(EACCES))));
    return 0;
  });
  CHECK_TRUE(kernel.wrote(": Permission denied"));
  LONGS_EQUAL(1, kernel.lines());
}

}  // namespace must_test
