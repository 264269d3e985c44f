#pragma once

#include <coir/error.h>
#include <coir/runtime.h>

#include <cstdint>
#include <expected>

#include "expectations.h"
#include "random.h"

namespace coir::test {

// is tells whether `outcome` failed with `code`.
template <class T>
bool is(const std::expected<T, Error>& outcome, ErrorCode code) {
  return !outcome && outcome.error() == code;
}

// cannot_see_threads tells whether this process has threads of somebody else's, the sanitizer's or the emulator's, that
// the deadlock report must take for ones that may yet wake a fiber.
bool cannot_see_threads() noexcept;

// Mixed lets fibers and threads do the same thing at random, over and over, and tells what seed they had when something
// was wrong. COIR_STRESS_SEED sets it; else it is fixed.
//
//   Mixed mixed("mutex");
//   mixed.run([&](Random& random) { ... mixed.expect(...); });
//   mixed.check();
class Mixed : private Expectations {
 public:
  using Expectations::expect;

  // Steps are fewer by `slowness`, for those that take long.
  explicit Mixed(const char* what, int slowness = 1) noexcept;

  // run has some fibers and, where there are many workers, some threads take many steps each: with one worker and with
  // two, with workers that migrate every fiber, and on a seeded schedule. One fiber in four is cancelled on the way and
  // ends before its next step. A thread's waits must end without fibers, or have a deadline: the fibers end first.
  template <class Step>
  void run(Step step) {
    run_all([](void* self, Random& random) { (*static_cast<Step*>(self))(random); }, &step);
  }

  // check fails the test if anything was wrong. Test thread only.
  void check() const;

 private:
  using Erased = void (*)(void* step, Random& random);
  void run_all(Erased step, void* argument);
  void run_once(const RunOptions& options, Erased step, void* argument);

  const char* what_;
  int slowness_;
  std::uint64_t seed_;
};

}  // namespace coir::test
