#include <CppUTest/TestHarness.h>
#include <coir/config.h>
#include <coir/fiber.h>
#include <coir/runtime.h>
#include <coir/tls.h>

#include <string_view>

#include "tests/support/expectations.h"
#include "tests/support/scale.h"
#include "tests/support/tls_inside.h"
#include "tests/support/tls_pair.h"

namespace tls_allocations_test {

using coir::Deadline;
using coir::ErrorCode;
using coir::TlsContext;
using coir::TlsStream;
using coir::TlsTicket;
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

TEST_GROUP_BASE(TlsAllocations, coir::test::Expecting) {
  const Authority authority;
  TlsContext server = authority.server();
  TlsContext client = authority.client();
  bool resumes = false;
  bool resumed = false;
  unsigned nth_of_ticket = 0;  // the allocation that fails when a ticket is taken
  TlsTicket ticket;            // of the last session that gave one, where they are resumed

  // talk is a handshake, a request and its answer. False: a side gave up.
  bool talk() {
    bool whole = true;
    const auto patience = [] { return Deadline::after(std::chrono::seconds(100)); };
    const auto ended = coir::run_until_idle({.workers = 1}, [&] {
      SocketPair pair;
      auto serving = coir::spawn({.name = "server", .stack = 8 * 1024}, [&] {
        auto stream = TlsStream::accept(std::move(pair.server), server, patience());
        char buffer[16];
        const auto got = stream ? stream->read(buffer, patience()) : std::unexpected(stream.error());
        const auto sent = got ? stream->write("pong", patience()) : std::unexpected(got.error());
        if (!sent) whole = false;
        if (stream) resumed = stream->resumed();
        if (!sent) expect(refused(sent.error()));
        if (!stream) pair.server.close();
      });
      {
        auto stream = TlsStream::connect(std::move(pair.client), client, "board.test", ticket, patience());
        const auto sent = stream ? stream->write("ping", patience()) : std::unexpected(stream.error());
        char buffer[16];
        const auto got = sent ? stream->read(buffer, patience()) : std::unexpected(sent.error());
        if (!got) whole = false;
        expect(got ? std::string_view(buffer, *got) == "pong" : refused(got.error()));
        if (got && resumes) {
          if (nth_of_ticket != 0) fail_nth(nth_of_ticket);
          auto given = stream->ticket();
          if (given) ticket = std::move(*given);
          // The ticket is lost and the session goes on where the server or the client had no memory for it.
          if (!given) whole = false;
          if (!given) expect(given.error() == ErrorCode::no_memory || given.error() == ErrorCode::not_found);
        }
      }
      expect(serving.join().has_value());
    });
    CHECK_TRUE(ended.has_value());
    return whole;
  }

  // fail_everywhere has each allocation of a session fail in turn.
  void fail_everywhere() {
    // The library's tables keep the size that one session needs; record buffers for both ends and for an ending stay, too.
    for (int i = 0; i < 2; ++i) CHECK_TRUE(talk());
    CHECK_EQUAL(resumes, resumed);
    const std::size_t before = coir::account::tls.used();
    unsigned runs = 0;
    for (unsigned nth = 1;; nth = next(nth)) {
      fail_nth(nth);
      const bool whole = talk();
      const bool failed = g_seen >= nth;
      fail_nth(0);
      check();
      LONGS_EQUAL(0, coir::account::handshakes.used());
      LONGS_EQUAL(before, coir::account::tls.used());
      if (!failed) {
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
  fail_everywhere();
}

TEST(TlsAllocations, that_fail_at_any_point_of_a_resumed_session_refuse_it_and_leak_nothing) {
  client = *TlsContext::client({.authorities = authority.made.certificate, .tickets = true});
  resumes = true;
  CHECK_TRUE(talk());
  CHECK_TRUE(bool(ticket));
  fail_everywhere();
}

#if !COIR_TLS_SMALL
TEST(TlsAllocations, that_fail_at_any_point_of_a_session_by_tls_1_2_refuse_it_and_leak_nothing) {
  client = coir::test::without_tls13(authority.client());
  fail_everywhere();
}

TEST(TlsAllocations, that_fail_at_any_point_of_a_resumed_session_by_tls_1_2_refuse_it_and_leak_nothing) {
  client = coir::test::without_tls13(*TlsContext::client({.authorities = authority.made.certificate, .tickets = true}));
  resumes = true;
  CHECK_TRUE(talk());
  CHECK_TRUE(bool(ticket));
  fail_everywhere();
}
#endif

TEST(TlsAllocations, that_fail_while_a_ticket_is_taken_leave_nothing_of_it) {
  client = *TlsContext::client({.authorities = authority.made.certificate, .tickets = true});
  resumes = true;
  CHECK_TRUE(talk());
  const std::size_t before = coir::account::tls.used();
  for (nth_of_ticket = 1; !talk(); ++nth_of_ticket) {
    fail_nth(0);
    LONGS_EQUAL(before, coir::account::tls.used());
  }
  fail_nth(0);
  check();
  CHECK_TRUE(nth_of_ticket > 2);
}

TEST(TlsAllocations, that_fail_while_a_client_is_remembered_refuse_it_and_leak_nothing) {
  const coir::TlsCertificate own[] = {authority.certificate()};
  server = *TlsContext::server(
      {.certificates = own, .client_authorities = authority.made.certificate, .remember_clients = true});
  client = *TlsContext::client({.authorities = authority.made.certificate, .certificate = own});
  fail_everywhere();
}

TEST(TlsAllocations, that_fail_while_a_context_is_made_refuse_it_and_leak_nothing) {
  const coir::TlsCertificate certificates[] = {authority.certificate()};
  const std::size_t before = coir::account::tls.used();
  for (unsigned nth = 1;; nth = next(nth)) {
    fail_nth(nth);
    const bool made =
        TlsContext::server({.certificates = certificates, .client_authorities = authority.made.certificate})
            .has_value();
    const bool failed = g_seen >= nth;
    fail_nth(0);
    LONGS_EQUAL(before, coir::account::tls.used());
    CHECK_EQUAL(failed, !made);
    if (!failed) break;
  }
}

}  // namespace tls_allocations_test
