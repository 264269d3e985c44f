// Waiting for the kernel's first random numbers. Each test is a process: once there are some, there always are.

#include <coir/config.h>
#include <coir/http/routes.h>
#include <coir/http/serve.h>
#include <coir/net/randomness.h>

#include <CppUTest/TestHarness.h>

#include "tests/support/child.h"
#include "tests/support/no_randomness.h"

#if !COIR_NO_ASYNC
#include <coir/runtime.h>

#include "tests/support/until.h"
#endif

namespace randomness_test {

using namespace std::chrono_literals;
using coir::await_randomness;
using coir::Deadline;
using coir::draw_secret;
using coir::ErrorCode;
using coir::randomness_ready;
using coir::test::Entropy;
using coir::test::in_child;
using coir::test::set_entropy;

namespace {

// times_out tells whether a wait ends by its deadline, though the kernel never has any.
bool times_out() {
  const auto waited = await_randomness(Deadline::after(20ms));
  return !waited && waited.error() == ErrorCode::timed_out && !randomness_ready();
}

}  // namespace

// clang-format off: the groups are not declarations.
TEST_GROUP(Randomness) {
  void teardown() override { set_entropy(Entropy::enough); }
};
// clang-format on

TEST(Randomness, a_plain_thread_waits_no_longer_than_its_deadline) {
  const auto end = in_child([] {
    set_entropy(Entropy::none);
    return times_out() && times_out() ? 0 : 1;
  });
  CHECK_EQUAL(0, end.status);
}

TEST(Randomness, a_wait_has_the_kernel_gather_some_and_ends_then) {
  const auto end = in_child([] {
    set_entropy(Entropy::none_yet);
    return !randomness_ready() && await_randomness() && randomness_ready() ? 0 : 1;
  });
  CHECK_EQUAL(0, end.status);
}

TEST(Randomness, a_secret_is_drawn_once_there_is_some_and_fails_by_its_deadline) {
  const auto end = in_child([] {
    char key[16] = {}, zeroes[16] = {};
    set_entropy(Entropy::none);
    const auto drawn = draw_secret(key, Deadline::after(20ms));
    if (drawn || drawn.error() != ErrorCode::timed_out || memcmp(key, zeroes, sizeof key) != 0) return 1;
    set_entropy(Entropy::none_yet);
    return draw_secret(key) && memcmp(key, zeroes, sizeof key) != 0 ? 0 : 2;
  });
  CHECK_EQUAL(0, end.status);
}

#if COIR_TLS
TEST(Randomness, serve_with_tls_says_that_it_waits) {
  const auto end = in_child([] {
    set_entropy(Entropy::none_yet);
    return coir::http::serve({.listen = "", .tls_listen = "127.0.0.1:0", .certificate = "/proc/none/cert.pem"},
                             [](coir::http::Exchange& exchange) { exchange.respond(200, "text/plain", "hello\n"); });
  });
  CHECK(end.wrote("server: waiting for the kernel's random numbers\n"));
  CHECK(end.wrote("server: certificate /proc/none/cert.pem: "));
  CHECK_EQUAL(2, end.status);
}
#endif

#if !COIR_NO_ASYNC
TEST(Randomness, a_fiber_parks_meanwhile_and_its_wait_ends_by_deadline_and_cancelling) {
  const auto end = in_child([] {
    return coir::run({.workers = 1}, [] {
      set_entropy(Entropy::none);
      if (!times_out()) return 1;
      ErrorCode how{};
      coir::Fiber waits = coir::spawn({.name = "waits"}, [&how] {
        if (auto waited = await_randomness(); !waited) how = waited.error().code;
      });
      coir::test::until_parked(waits);  // the only worker goes on
      static_cast<void>(waits.cancel());
      static_cast<void>(waits.join());
      if (how != ErrorCode::cancelled) return 2;
      set_entropy(Entropy::none_yet);
      return await_randomness() ? 0 : 3;
    });
  });
  CHECK_EQUAL(0, end.status);
}
#endif

}  // namespace randomness_test
