#pragma once

#include <CppUTest/TestHarness.h>

#include <atomic>
#include <source_location>

namespace coir::test {

// Expectations counts what fibers and threads find wrong, where CppUTest's own checks may not be called: they leave by
// longjmp. The test's thread fails the test afterwards, and names the places.
class Expectations {
 public:
  // expect notes the place of the call unless `right`. Any fiber, any thread; lock-free, allocates nothing.
  void expect(bool right, const std::source_location& where = std::source_location::current()) noexcept {
    if (!right) note(where);
  }

  // wrong is how many expectations were broken.
  int wrong() const noexcept { return wrong_.load(std::memory_order_acquire); }

  // check fails the test if any was broken, and says how often and where: `label`, then the first few places. Test
  // thread only, once the fibers and threads that expected are joined.
  void check(const char* label = "") const {
    if (wrong() == 0) return;
    const std::source_location first = places_[0].load();
    SimpleString text = StringFromFormat("%s%s%d broken, at", label, *label != '\0' ? ": " : "", wrong());
    for (const auto& place : places_) {
      const std::source_location where = place.load();
      if (where.line() != 0) text += StringFromFormat(" %s:%u", name_of(where), static_cast<unsigned>(where.line()));
    }
    UtestShell::getCurrent()->fail(text.asCharString(), first.file_name(), first.line());
  }

 private:
  static constexpr int kPlaces = 4;

  // A place is noted once, however often it is come by.
  void note(const std::source_location& where) noexcept {
    for (auto& place : places_) {
      std::source_location seen;
      if (place.compare_exchange_strong(seen, where) || is_same(seen, where)) break;
    }
    wrong_.fetch_add(1, std::memory_order_release);
  }
  static bool is_same(const std::source_location& a, const std::source_location& b) noexcept {
    return a.line() == b.line() && __builtin_strcmp(a.file_name(), b.file_name()) == 0;
  }
  static const char* name_of(const std::source_location& where) noexcept {
    const char* const slash = __builtin_strrchr(where.file_name(), '/');
    return slash != nullptr ? slash + 1 : where.file_name();
  }

  std::atomic<std::source_location> places_[kPlaces] = {};
  std::atomic<int> wrong_{0};
  static_assert(std::atomic<std::source_location>::is_always_lock_free);
};

// Expecting is the group of tests whose fibers and threads expect:
//
//   TEST_GROUP_BASE(Task, Expecting) {};
//   TEST(Task, is_awaited) { CHECK_TRUE(run_until_idle({}, [&] { expect(...); }).has_value()); check(); }
class Expecting : public Utest, public Expectations {};

}  // namespace coir::test
