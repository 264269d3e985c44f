// Callable keeps what has a name by reference and what has none by value.

#include <CppUTest/TestHarness.h>
#include <coir/callable.h>

namespace callable_test {

using coir::Callable;

namespace {

int twice(int value) {
  return 2 * value;
}

struct Counter {
  int count = 0;
  char much[100] = {};
  int operator()(int more) { return count += more; }
};

}  // namespace

TEST_GROUP(Callable) {};

TEST(Callable, an_empty_one_says_so) {
  CHECK(!Callable<void()>());
  CHECK(!Callable<void()>(nullptr));
  CHECK(static_cast<bool>(Callable<int(int)>(twice)));
}

TEST(Callable, a_function_and_a_lambda_are_called) {
  CHECK_EQUAL(42, Callable<int(int)>(twice)(21));
  CHECK_EQUAL(42, Callable<int(int)>(&twice)(21));
  CHECK_EQUAL(3, Callable<int(int)>([](int value) { return value + 1; })(2));
}

TEST(Callable, what_has_no_name_is_kept_by_value_and_copied_with_it) {
  Callable<int()> copy;
  int seen = 1;
  {
    int own = 7;
    const Callable<int()> first = [own, &seen] { return own + seen; };
    copy = first;
  }
  seen = 2;
  CHECK_EQUAL(9, copy());
}

TEST(Callable, what_has_a_name_is_called_itself_however_large_it_is) {
  Counter counter;
  const Callable<int(int)> call = counter;
  CHECK_EQUAL(2, call(2));
  CHECK_EQUAL(5, Callable<int(int)>(call)(3));
  CHECK_EQUAL(5, counter.count);
  // A name without a state need not last.
  Callable<int()> late;
  {
    const auto one = [] { return 1; };
    late = one;
  }
  CHECK_EQUAL(1, late());
}

}  // namespace callable_test
