// Records that yield no data: they are allowed, or refused, and nobody has a worker for himself by them.
#include <CppUTest/TestHarness.h>
#include <coir/cancel_scope.h>
#include <coir/fiber.h>
#include <coir/tls.h>

#include <string_view>

#include "tests/support/tls_inside.h"
#include "tests/support/tls_talk.h"

namespace tls_flood_test {

using coir::Deadline;
using coir::ErrorCode;
using coir::spawn;
using coir::TlsContext;
using coir::TlsStream;
using coir::test::inside;
using coir::test::patience;
using coir::test::SocketPair;
using namespace std::chrono_literals;

namespace {

// A ChangeCipherSpec record of TLS 1.3 in the clear.
constexpr char kCipherChange[] = {20, 3, 3, 0, 1, 1};

}  // namespace

TEST_GROUP_BASE(TlsFlood, coir::test::TlsTalk) {
  void setup() override {
    stack = 64 * 1024;
    server_begins = true;
  }

  // say has mbedTLS write a record by `one`. False: the peer has gone.
  template <class One>
  static bool say(TlsStream& stream, One one) noexcept {
    for (;;) {
      const int code = one(inside(stream));
      if (code != MBEDTLS_ERR_SSL_WANT_WRITE) return code >= 0;
      if (!coir::wait(stream.tcp().fd(), coir::Direction::writable, patience())) return false;
      stream.mark_ready(coir::Direction::writable);
    }
  }

  static int nothing(mbedtls_ssl_context& ssl) noexcept {
    return mbedtls_ssl_write(&ssl, reinterpret_cast<const unsigned char*>(""), 0);
  }

  // A reader whose peer sends nothing but records without data gives up at its deadline, lets others run until then, and
  // notices that they cancel it.
  template <class One>
  void ends_at_its_deadline(One one) {
    everywhere([&] {
      between(
          [&](TlsStream& stream) {
            char byte[1];
            expect(stream.read(byte, Deadline::after(100ms)).error() == ErrorCode::timed_out);
            coir::Fiber other;
            {
              coir::CancelScope reading;
              other = spawn({.detached = true}, [&] {
                for (int turn = 0; turn < 4; ++turn) expect(coir::sleep(1ms).has_value());
                reading.cancel();
              });
              expect(stream.read(byte, patience()).error() == ErrorCode::cancelled);
            }
            expect(other.join().has_value());
            stream.abandon();
          },
          [&](TlsStream& stream) {
            while (say(stream, one)) {
            }
          });
    });
  }
};

TEST(TlsFlood, a_handshake_ends_at_the_third_change_of_ciphers) {
  everywhere([&] {
    SocketPair pair;
    auto serving = spawn({.stack = stack}, [&] {
      auto stream = TlsStream::accept(std::move(pair.server), server, patience());
      expect(!stream && stream.error() == ErrorCode::protocol);
    });
    // As long as anybody reads them.
    while (pair.client.write({kCipherChange, sizeof kCipherChange}, Deadline::after(10s))) {
    }
    char alert[7] = {};
    expect(pair.client.read(alert, patience()).value_or(0) == 7 && alert[0] == 21 && alert[6] == 10);
    expect(serving.join().has_value());
  });
}

TEST(TlsFlood, a_change_of_ciphers_after_the_handshake_is_refused_with_an_alert) {
  everywhere([&] {
    between(
        [&](TlsStream& stream) {
          char byte[1];
          const auto got = stream.read(byte, patience());
          expect(!got && got.error() == ErrorCode::protocol);
          expect(stream.read(byte, patience()).error() == got.error());
        },
        [&](TlsStream& stream) {
          expect(stream.tcp().write({kCipherChange, sizeof kCipherChange}, patience()).has_value());
          char byte[1];
          const auto got = stream.read(byte, patience());
          expect(!got && got.error() == coir::Error{ErrorCode::alert, 10});
        });
  });
}

TEST(TlsFlood, empty_records_are_no_end_and_no_error_however_many_come_before_the_data) {
  for (const bool old : {false, true}) {
    if (old && !coir::test::kTls12) continue;
    if (old) server = coir::test::without_tls13(coir::test::authority().server());
    everywhere([&] {
      between(
          [&](TlsStream& stream) {
            char byte[1];
            for (const char wanted : {'1', '2', '3'}) {
              const auto got = stream.read(byte, patience());
              expect(got && byte[0] == wanted);
            }
            expect(stream.read(byte, patience()).error() == ErrorCode::end_of_stream);
          },
          [&](TlsStream& stream) {
            const char* data = "123";
            for (const int empty : {1, 2, 500}) {
              for (int i = 0; i < empty; ++i) expect(say(stream, nothing));
              expect(stream.write({data++, 1}, patience()).has_value());
            }
            // The last word waits for no room, which 500 small records may have taken.
            expect(coir::wait(stream.tcp().fd(), coir::Direction::writable, patience()).has_value());
            stream.mark_ready(coir::Direction::writable);
            stream.shutdown_write();
          });
    });
  }
}

TEST(TlsFlood, a_reader_of_empty_records_ends_at_its_deadline_and_lets_others_run) {
  ends_at_its_deadline(nothing);
}

TEST(TlsFlood, a_reader_of_warnings_ends_at_its_deadline_and_lets_others_run) {
  constexpr unsigned char kUserCanceled = 90;
  ends_at_its_deadline([](mbedtls_ssl_context& ssl) {
    return mbedtls_ssl_send_alert_message(&ssl, MBEDTLS_SSL_ALERT_LEVEL_WARNING, kUserCanceled);
  });
}

}  // namespace tls_flood_test
