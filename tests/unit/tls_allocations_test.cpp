#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/net/tls.h>
#include <coir/runtime.h>

#include <string_view>

#include "tests/support/scale.h"
#include "tests/support/tls_inside.h"
#include "tests/support/tls_pair.h"
#include "tests/support/watchdog.h"

using coir::Deadline;
using coir::ErrorCode;
using coir::TlsContext;
using coir::TlsStream;
using coir::test::Authority;
using coir::test::SocketPair;

extern "C" void* __real_coir_tls_calloc(std::size_t count, std::size_t size);

namespace {

unsigned g_nth = 0;   // the allocation that fails, counted from 1; 0: none
unsigned g_seen = 0;  // since it was set

void fail_nth(unsigned nth) {
  g_nth = nth;
  g_seen = 0;
}

// next goes through every allocation at first, and in growing steps later on.
constexpr unsigned kAll =
    coir::test::scaled({.plain = 60, .address_sanitized = 40, .thread_sanitized = 10, .emulated = 10});

unsigned next(unsigned nth) {
  return nth < kAll ? nth + 1 : nth + 1 + nth / (kAll / 3);
}

bool refused(coir::Error error) {
  // The end that runs out of memory says so, or breaks off a step for want of it; the other sees an alert, or the end.
  return error == ErrorCode::no_memory || error == ErrorCode::protocol || error == ErrorCode::alert ||
         error == ErrorCode::truncated || error == ErrorCode::end_of_stream || error == ErrorCode::closed;
}

}  // namespace

// Led here by the linker: every allocation of mbedTLS.
extern "C" void* __wrap_coir_tls_calloc(std::size_t count, std::size_t size) {
  if (g_nth != 0 && ++g_seen == g_nth) return nullptr;
  return __real_coir_tls_calloc(count, size);
}

TEST_GROUP(TlsAllocations) {
  const Authority authority;
  TlsContext server = authority.server();
  TlsContext client = coir::test::with_tickets(authority.client());
  coir::test::SavedSession saved;
  // What the next talk does with it.
  bool save = false, resume = false, resumed = false;
  coir::test::Watchdog watchdog{200, "failing allocations"};
  int wrong = 0;

  // talk is a handshake, a request and its answer. False: a side gave up.
  bool talk() {
    bool whole = true;
    const auto expect = [&](bool right) { wrong += !right; };
    const auto patience = [] { return Deadline::after(std::chrono::seconds(100)); };
    const auto ended = coir::run_until_idle({.workers = 1}, [&] {
      SocketPair pair;
      auto serving = coir::spawn({.name = "server", .stack = 8 * 1024}, [&] {
        auto stream = TlsStream::accept(std::move(pair.server), server, patience());
        char buffer[16];
        const auto got = stream ? stream->read(buffer, patience()) : std::unexpected(stream.error());
        const auto sent = got ? stream->write("pong", patience()) : std::unexpected(got.error());
        if (!sent) whole = false;
        if (!sent) expect(refused(sent.error()));
        if (stream) resumed = stream->resumed();
        if (!stream) pair.server.close();
      });
      {
        coir::Stream stream = std::move(pair.client);
        auto met = stream.begin_tls(client, "board.test", patience());
        // Where there is no memory for a ticket, the handshake is a whole one.
        if (met && resume) static_cast<void>(saved.resume(stream));
        if (met) met = stream.handshake();
        const auto sent = met ? stream.write("ping", patience()) : met;
        char buffer[16];
        const auto got = sent ? stream.read(buffer, patience()) : std::unexpected(sent.error());
        if (got && save) expect(saved.save(stream));
        if (!got) whole = false;
        expect(got ? std::string_view(buffer, *got) == "pong" : refused(got.error()));
      }
      expect(serving.join().has_value());
    });
    CHECK_TRUE(ended.has_value());
    return whole;
  }

  // fail_each has talk fail at one allocation after the other.
  void fail_each() {
    for (int i = 0; i < 2; ++i) CHECK_TRUE(talk());
    // What the library's tables grow to for one session stays, and record buffers for both ends and for an ending.
    const std::size_t before = coir::account::tls.used();
    unsigned runs = 0;
    for (unsigned nth = 1;; nth = next(nth)) {
      fail_nth(nth);
      const bool whole = talk();
      const bool struck = g_seen >= nth;
      fail_nth(0);
      LONGS_EQUAL(0, wrong);
      LONGS_EQUAL(0, coir::account::handshakes.used());
      LONGS_EQUAL(before, coir::account::tls.used());
      if (!struck) {
        CHECK_TRUE(whole);
        break;
      }
      ++runs;
    }
    CHECK_TRUE(runs > 10);
    CHECK_TRUE(talk());
  }
};

TEST(TlsAllocations, that_fail_at_any_point_of_a_session_refuse_it_and_leak_nothing) {
  fail_each();
}

TEST(TlsAllocations, that_fail_at_any_point_of_a_resumed_session_leak_nothing) {
  save = true;
  CHECK_TRUE(talk());
  save = false;
  resume = true;
  CHECK_TRUE(talk());
  CHECK_TRUE(resumed);
  fail_each();
}

#if !defined(COIR_TLS_SMALL)
TEST(TlsAllocations, that_fail_at_any_point_of_a_session_by_tls_1_2_refuse_it_and_leak_nothing) {
  client = coir::test::without_tls13(authority.client());
  fail_each();
}

TEST(TlsAllocations, that_fail_at_any_point_of_a_resumed_session_by_tls_1_2_leak_nothing) {
  client = coir::test::without_tls13(authority.client());
  save = true;
  CHECK_TRUE(talk());
  save = false;
  resume = true;
  CHECK_TRUE(talk());
  CHECK_TRUE(resumed);
  fail_each();
}
#endif

TEST(TlsAllocations, that_fail_while_a_context_is_made_refuse_it_and_leak_nothing) {
  const coir::TlsCertificate certificates[] = {authority.certificate()};
  const std::size_t before = coir::account::tls.used();
  for (unsigned nth = 1;; nth = next(nth)) {
    fail_nth(nth);
    const bool made =
        TlsContext::server({.certificates = certificates, .client_authorities = authority.made.certificate})
            .has_value();
    const bool struck = g_seen >= nth;
    fail_nth(0);
    LONGS_EQUAL(before, coir::account::tls.used());
    CHECK_EQUAL(struck, !made);
    if (!struck) break;
  }
}
