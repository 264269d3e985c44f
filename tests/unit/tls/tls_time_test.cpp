// The time by which certificates are judged. A time once seen stays seen, so all of it is one test.
#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/runtime.h>
#include <coir/tls.h>
#include <mbedtls/platform_time.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/tls_pair.h"

namespace tls_time_test {

using coir::ErrorCode;
using coir::TlsContext;
using coir::TlsStream;
using coir::test::authority;
using coir::test::patience;
using coir::test::SocketPair;

TEST_GROUP(TlsTime) {
  static constexpr std::int64_t kYear = 31'556'952;
  static constexpr std::int64_t kIn2049 = 79 * kYear + kYear / 2;
  static constexpr std::int64_t kIn2051 = 81 * kYear + kYear / 2;

  // outcome is what a client says of a server whose certificate holds from 2020 to 2050.
  static coir::Error outcome(const TlsContext& server, const TlsContext& client) noexcept {
    coir::Error met{};
    const auto ended = coir::run_until_idle({.workers = 1}, [&] {
      SocketPair pair;
      auto serving = coir::spawn(
          [&] { static_cast<void>(TlsStream::accept(std::move(pair.server), server, patience()).has_value()); });
      const auto stream = TlsStream::connect(std::move(pair.client), client, "board.test", patience());
      if (!stream) met = stream.error();
      static_cast<void>(serving.join());
    });
    if (!ended) met = ended.error();
    return met;
  }
};

TEST(TlsTime, is_the_clock_s_unless_a_later_one_was_seen_by_which_certificates_expire_then) {
  const TlsContext server = authority().server(), client = authority().client();
  CHECK_TRUE(coir::time_valid());
  coir::time_was_seen(0);
  CHECK_TRUE(coir::time_valid());

  coir::time_was_seen(kIn2049);
  CHECK_FALSE(coir::time_valid());
  CHECK_TRUE(outcome(server, client) == coir::Error{});
  // It passes by the monotonic clock: mbedTLS rotates the keys of tickets by it.
  const std::int64_t began = mbedtls_time(nullptr);
  CHECK_TRUE(began >= kIn2049 && began < kIn2049 + 60);
  while (mbedtls_time(nullptr) < began + 2) usleep(10'000);

  coir::time_was_seen(kIn2051);
  coir::time_was_seen(kIn2049);
  const coir::Error met = outcome(server, client);
  CHECK_TRUE(met == ErrorCode::untrusted);
  STRCMP_EQUAL("certificate expired, and the clock is not set", coir::describe(met));

  const coir::TlsCertificate own[] = {authority().certificate()};
  const auto late = TlsContext::server({.certificates = own});
  CHECK_FALSE(late.has_value());
  CHECK_TRUE(late.error() == ErrorCode::invalid);
  STRCMP_EQUAL("the certificate has expired", coir::describe(late.error()));
  CHECK_TRUE(coir::tls_fault(late.error()).input == coir::TlsFault::Input::certificate);
}

}  // namespace tls_time_test
