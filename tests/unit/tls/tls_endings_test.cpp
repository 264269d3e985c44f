// How sessions end, and what a deadline, a cancellation, an alert and the closing word leave of them.
#include <CppUTest/TestHarness.h>
#include <coir/event.h>
#include <coir/fiber.h>
#include <coir/tls.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string_view>

#include "tests/support/tls_inside.h"
#include "tests/support/tls_talk.h"
#include "tests/support/until.h"

namespace tls_endings_test {

using coir::Deadline;
using coir::ErrorCode;
using coir::spawn;
using coir::TlsContext;
using coir::TlsStream;
using coir::test::Authority;
using coir::test::authority;
using coir::test::inside;
using coir::test::patience;
using coir::test::SocketPair;
using coir::test::until;
using namespace std::chrono_literals;

namespace {

struct Talk : coir::test::TlsTalk {
  Talk() noexcept {
    stack = 32 * 1024;
    server_begins = true;
  }
};

}  // namespace

TEST_GROUP_BASE(TlsEndings, Talk) {
  static constexpr std::size_t kCycle = 251;

  // The sequence that a test sends: what arrives twice, or not at all, is seen.
  static char at(std::size_t place) noexcept { return static_cast<char>(place % kCycle); }

  // fill writes the sequence until that times out, and returns how far it came.
  static std::size_t fill(TlsStream& stream, std::size_t from, Deadline deadline) noexcept {
    std::array<char, 9000> block;
    for (;;) {
      for (std::size_t i = 0; i < block.size(); ++i) block[i] = at(from + i);
      const iovec part = {block.data(), block.size()};
      const auto sent = stream.write_some(std::span(&part, 1), deadline);
      if (!sent) return from;
      from += *sent;
    }
  }

  // take reads `bytes` of the sequence.
  void take(TlsStream& stream, std::size_t& place, std::size_t bytes) noexcept {
    std::array<char, 3000> block;
    for (const std::size_t end = place + bytes; place < end;) {
      const auto got = stream.read(std::span(block).first(std::min(block.size(), end - place)), patience());
      expect(got.has_value());
      if (!got) return;
      bool right = true;
      for (std::size_t i = 0; i < *got; ++i) right &= block[i] == at(place + i);
      expect(right);
      place += *got;
    }
  }
};

TEST(TlsEndings, read_and_write_that_are_cancelled_leave_a_session_that_goes_on) {
  everywhere([&] {
    coir::Event cancelled;
    between(
        [&](TlsStream& stream) {
          auto reader = spawn([&] {
            char byte[1];
            expect(stream.read(byte, patience()).error() == ErrorCode::cancelled);
          });
          until_waits(reader, "readable");
          static_cast<void>(reader.cancel());
          expect(reader.join().has_value());
          std::size_t sent = 0;
          auto writer = spawn({.stack = 32 * 1024}, [&] { sent = fill(stream, 0, patience()); });
          until_waits(writer, "writable");
          static_cast<void>(writer.cancel());
          expect(writer.join().has_value());
          cancelled.set();
          expect(stream.tcp().is_open());
          char byte[1];
          auto asked = spawn([&] { expect(stream.read(byte, patience()).has_value() && byte[0] == '?'); });
          // A record that a cancelled write left half sent is continued: the sequence has no gap.
          auto rest = spawn({.stack = 32 * 1024}, [&] {
            const std::size_t end = sent + 50'000;
            while (sent < end) {
              std::array<char, 5000> block;
              for (std::size_t i = 0; i < block.size(); ++i) block[i] = at(sent + i);
              const iovec part = {block.data(), std::min(block.size(), end - sent)};
              const auto some = stream.write_some(std::span(&part, 1), patience());
              expect(some.has_value());
              if (!some) return;
              sent += *some;
            }
            stream.shutdown_write();
          });
          expect(asked.join().has_value());
          expect(rest.join().has_value());
        },
        [&](TlsStream& stream) {
          expect(cancelled.wait(patience()).has_value());
          expect(stream.write("?", patience()).has_value());
          std::size_t place = 0;
          std::array<char, 3000> block;
          for (;;) {
            const auto got = stream.read(block, patience());
            if (!got) {
              expect(got.error() == ErrorCode::end_of_stream);
              break;
            }
            bool right = true;
            for (std::size_t i = 0; i < *got; ++i) right &= block[i] == at(place + i);
            expect(right);
            place += *got;
          }
          expect(place >= 50'000);
        });
  });
}

TEST(TlsEndings, read_that_timed_out_is_repeated_and_loses_nothing) {
  everywhere([&] {
    between(
        [&](TlsStream& stream) {
          char buffer[8];
          expect(stream.read(buffer, Deadline::after(5ms)).error() == ErrorCode::timed_out);
          expect(stream.read(buffer, Deadline::now()).error() == ErrorCode::timed_out);
          expect(stream.write("go", patience()).has_value());
          const auto got = stream.read(buffer, patience());
          expect(got && std::string_view(buffer, *got) == "late");
        },
        [&](TlsStream& stream) {
          char buffer[8];
          expect(stream.read(buffer, patience()).has_value());
          expect(stream.write("late", patience()).has_value());
        });
  });
}

// A reader that has an alert to send first sends what a writer waits with. mbedTLS takes the repeated write for
// another.
TEST(TlsEndings, record_that_an_alert_has_pushed_out_is_not_sent_twice) {
  everywhere([&] {
    std::atomic<std::size_t> sent = 0;
    std::atomic<bool> full = false, pushed = false;
    between(
        [&](TlsStream& stream) {
          // On a busy machine the time may be over before the socket is full.
          do sent = fill(stream, sent, Deadline::after(20ms));
          while (inside(stream).MBEDTLS_PRIVATE(out_left) == 0);
          full = true;
          int outcome = MBEDTLS_ERR_SSL_WANT_WRITE;
          while (outcome == MBEDTLS_ERR_SSL_WANT_WRITE) {
            coir::yield();
            stream.mark_ready(coir::Direction::writable);
            outcome = coir::on_worker_stack([&] {
              return mbedtls_ssl_send_alert_message(&inside(stream), MBEDTLS_SSL_ALERT_LEVEL_WARNING,
                                                    MBEDTLS_SSL_ALERT_MSG_NO_RENEGOTIATION);
            });
          }
          expect(outcome == 0);
          pushed = true;
          for (std::size_t at = sent; at < sent + 20'000;) at = fill(stream, at, Deadline::after(20ms));
          char byte[1];
          static_cast<void>(stream.read(byte, patience()));
        },
        [&](TlsStream& stream) {
          while (!full) coir::yield();
          std::size_t place = 0;
          take(stream, place, sent);
          while (!pushed) coir::yield();
          take(stream, place, 20'000);
        });
  });
}

// Two close a stream at the same moment: one takes the session.
TEST(TlsEndings, close_that_comes_too_late_finds_no_session) {
  coir::tls::end(nullptr, true);
  coir::tls::end(nullptr, false);
}

TEST(TlsEndings, wakes_a_writer_whose_stream_is_closed) {
  everywhere([&] {
    std::atomic<bool> over = false;
    between(
        [&](TlsStream& stream) {
          auto writer = spawn({.stack = 32 * 1024}, [&] {
            std::array<char, 9000> block{};
            for (;;) {
              const auto sent = stream.write({block.data(), block.size()}, patience());
              if (sent) continue;
              expect(sent.error() == ErrorCode::closed);
              break;
            }
          });
          until_waits(writer, "writable");
          stream.close();
          expect(writer.join().has_value());
          over = true;
        },
        [&](TlsStream&) { until([&] { return over.load(); }); });
  });
}

TEST(TlsEndings, side_that_has_heard_the_closing_word_may_write_and_closes_in_good_order) {
  everywhere([&] {
    between(
        [&](TlsStream& stream) {
          char buffer[16];
          for (int i = 0; i < 2; ++i) {
            expect(stream.read(buffer, patience()).error() == ErrorCode::end_of_stream);
          }
          expect(stream.write("last", patience()).has_value());
        },
        [&](TlsStream& stream) {
          stream.shutdown_write();
          char buffer[16];
          const auto got = stream.read(buffer, patience());
          expect(got && std::string_view(buffer, *got) == "last");
          expect(stream.read(buffer, patience()).error() == ErrorCode::end_of_stream);
        });
  });
}

// The server's ticket is still under way to it then, and cannot be delivered.
TEST(TlsEndings, client_that_has_said_all_and_gone_is_heard) {
  everywhere([&] {
    SocketPair pair;
    auto serving = spawn([&] {
      auto stream = TlsStream::accept(std::move(pair.server), server, patience());
      expect(stream.has_value());
      char buffer[16];
      const auto got = stream ? stream->read(buffer, patience()) : std::unexpected(stream.error());
      expect(got && std::string_view(buffer, *got) == "all");
      expect(stream && stream->read(buffer, patience()).error() == ErrorCode::end_of_stream);
    });
    auto stream = TlsStream::connect(std::move(pair.client), client, "board.test", patience());
    expect(stream && stream->write("all", patience()).has_value());
    if (stream) stream->close();
    expect(serving.join().has_value());
  });
}

TEST(TlsEndings, write_after_the_peer_has_gone_is_closed) {
  everywhere([&] {
    between(
        [&](TlsStream& stream) {
          char buffer[16];
          expect(stream.read(buffer, patience()).error() == ErrorCode::end_of_stream);
          auto sent = stream.write("into the void", patience());
          for (int i = 0; i < 1000 && sent; ++i) {
            coir::yield();
            sent = stream.write("into the void", patience());
          }
          expect(!sent && sent.error() == ErrorCode::closed);
        },
        [&](TlsStream& stream) { stream.close(); });
  });
}

TEST(TlsEndings, alert_is_told_with_the_peer_s_reason_for_good) {
  everywhere([&] {
    std::atomic<bool> over = false;
    between(
        [&](TlsStream& stream) {
          char buffer[16];
          for (int i = 0; i < 2; ++i) {
            const auto got = stream.read(buffer, patience());
            expect(!got && got.error() == ErrorCode::alert);
            expect(!got && strcmp(coir::describe(got.error()), "refused by the peer: access denied") == 0);
          }
          // The connection would still carry it.
          const auto sent = stream.write("x", patience());
          expect(!sent && sent.error() == ErrorCode::alert);
          over = true;
        },
        [&](TlsStream& stream) {
          coir::on_worker_stack([&] {
            static_cast<void>(mbedtls_ssl_send_alert_message(&inside(stream), MBEDTLS_SSL_ALERT_LEVEL_FATAL,
                                                             MBEDTLS_SSL_ALERT_MSG_ACCESS_DENIED));
          });
          until([&] { return over.load(); });
        });
  });
}

TEST(TlsEndings, server_is_told_why_its_certificate_was_refused) {
  static const Authority other("board.test");
  struct Case {
    const Authority& trusted;
    const char* name;
    const char* reason;
  };
  for (const bool tls12 : {false, true}) {
    if (tls12 && !coir::test::kTls12) continue;
    for (const Case& each : {Case{authority(), "elsewhere.test", "refused by the peer: bad certificate"},
                             Case{other, "board.test", "refused by the peer: unknown authority"}}) {
      const TlsContext by_client = tls12 ? coir::test::without_tls13(each.trusted.client()) : each.trusted.client();
      everywhere([&] {
        SocketPair pair;
        const coir::test::Kept kept(pair.client);
        auto serving = spawn([&] {
          const auto stream = TlsStream::accept(std::move(pair.server), server, patience());
          expect(!stream && stream.error() == ErrorCode::alert);
          expect(!stream && strcmp(coir::describe(stream.error()), each.reason) == 0);
        });
        const auto stream = TlsStream::connect(std::move(pair.client), by_client, each.name, patience());
        expect(!stream && stream.error() == ErrorCode::untrusted);
        expect(serving.join().has_value());
      });
    }
  }
}

// By TLS 1.3 the client has all keys by then, and the server not: it must say so by those that the client reads with.
TEST(TlsEndings, client_is_told_why_the_certificate_that_it_shows_or_does_not_show_is_refused) {
  static const Authority mine("mine.test"), stranger("stranger.test");
  const coir::TlsCertificate own[] = {authority().certificate()};
  server = *TlsContext::server({.certificates = own, .client_authorities = mine.made.certificate});
  struct Case {
    const Authority* shown;
    int by_tls12, by_tls13;
  };
  for (const bool tls12 : {false, true}) {
    if (tls12 && !coir::test::kTls12) continue;
    for (const Case& each :
         {Case{nullptr, MBEDTLS_SSL_ALERT_MSG_HANDSHAKE_FAILURE, MBEDTLS_SSL_ALERT_MSG_CERT_REQUIRED},
          Case{&stranger, MBEDTLS_SSL_ALERT_MSG_UNKNOWN_CA, MBEDTLS_SSL_ALERT_MSG_UNKNOWN_CA}}) {
      const coir::TlsCertificate shown = (each.shown != nullptr ? *each.shown : mine).certificate();
      const TlsContext by_client = *TlsContext::client(
          {.authorities = authority().made.certificate, .certificate = each.shown != nullptr ? &shown : nullptr});
      client = tls12 ? coir::test::without_tls13(by_client) : by_client;
      everywhere([&] {
        SocketPair pair;
        auto serving = spawn([&] {
          const auto stream = TlsStream::accept(std::move(pair.server), server, patience());
          expect(!stream && stream.error() != ErrorCode::alert);
        });
        auto stream = TlsStream::connect(std::move(pair.client), client, "board.test", patience());
        char byte[1];
        const auto got = stream ? stream->read(byte, patience()) : std::unexpected(stream.error());
        expect(!got && got.error() == ErrorCode::alert);
        expect(!got && got.error().sys == (tls12 ? each.by_tls12 : each.by_tls13));
        if (stream) stream->close();
        expect(serving.join().has_value());
      });
    }
  }
}

// To close at once would have the kernel reset the connection, and the alert may go with it.
TEST(TlsEndings, server_that_refuses_takes_what_comes_until_its_client_ends) {
  everywhere([&] {
    SocketPair pair;
    auto serving = spawn([&] {
      const auto stream = TlsStream::accept(std::move(pair.server), server, patience());
      expect(!stream && stream.error() == ErrorCode::protocol);
    });
    expect(pair.client.write("GET / HTTP/1.1\r\n\r\n", patience()).has_value());
    char alert[16];
    const auto got = pair.client.read(alert, patience());
    expect(got && *got == 7 && alert[0] == MBEDTLS_SSL_MSG_ALERT &&
           alert[6] == MBEDTLS_SSL_ALERT_MSG_UNEXPECTED_MESSAGE);
    expect(pair.client.read(alert, patience()).error() == ErrorCode::end_of_stream);
    expect(pair.client.write("more", patience()).has_value());
    pair.client.close();
    expect(serving.join().has_value());
  });
}

TEST(TlsEndings, handshake_that_is_over_is_on_its_account_no_more) {
  everywhere([&] {
    std::atomic<bool> over = false;
    between([&](TlsStream&) { until([&] { return over.load(); }); },
            [&](TlsStream&) {
              expect(coir::account::handshakes.used() == 0);
              expect(coir::tls_counters().under_way.load() == 0 && coir::tls_counters().sessions.load() == 2);
              over = true;
            });
  });
}

TEST(TlsEndings, rest_gives_buffers_back_unless_there_is_something_to_read_in_them) {
  everywhere([&] {
    std::atomic<bool> written = false;
    between(
        [&](TlsStream& stream) {
          until([&] { return written.load(); });
          char buffer[16];
          for (const std::string_view word : {"one", "two"}) {
            const auto got = stream.read(buffer, patience());
            expect(got && std::string_view(buffer, *got) == word);
            stream.rest();
            expect((inside(stream).MBEDTLS_PRIVATE(in_buf) == nullptr) == (word == "two"));
          }
          expect(stream.write("x", patience()).has_value());
        },
        [&](TlsStream& stream) {
          // Two records, which are read with one call.
          expect(stream.write("one", patience()).has_value());
          expect(stream.write("two", patience()).has_value());
          written = true;
          char byte[1];
          expect(stream.read(byte, patience()).has_value());
        });
  });
}

// A call that begins lets others run now and then, before it has said anything to the session.
TEST(TlsEndings, a_close_leaves_the_session_to_a_call_that_lets_others_run) {
  const auto ended = coir::run_until_idle({.workers = 1}, [&] {
    for (int turns = 1; turns <= 20; ++turns) {
      between(
          [&](TlsStream& stream) {
            const std::array<char, 2000> block{};
            while (stream.write({block.data(), block.size()}, patience())) {
            }
          },
          [&](TlsStream& stream) {
            auto closer = spawn([&] {
              for (int i = 0; i < turns; ++i) coir::yield();
              stream.close();
            });
            char byte[1];
            auto got = stream.read(byte, patience());
            while (got) got = stream.read(byte, patience());
            expect(got.error() == ErrorCode::closed);
            expect(closer.join().has_value());
          });
    }
  });
  CHECK_TRUE(ended.has_value());
  check();
}

// A ticket that mbedTLS puts by for the next call is no reason to wait for the socket, which has been emptied.
TEST(TlsEndings, ticket_that_arrives_with_the_answer_does_not_hold_it_up) {
  client = *TlsContext::client({.authorities = authority().made.certificate, .tickets = true});
  everywhere([&] {
    SocketPair pair;
    std::atomic<bool> written = false;
    auto serving = spawn([&] {
      auto stream = TlsStream::accept(std::move(pair.server), server, patience());
      expect(stream && stream->write("hello", patience()).has_value());
      written = true;
      char byte[1];
      if (stream) static_cast<void>(stream->read(byte, patience()));
    });
    auto stream = TlsStream::connect(std::move(pair.client), client, "board.test", patience());
    expect(stream.has_value());
    while (!written) coir::yield();
    char buffer[16];
    if (stream) {
      const auto got = stream->read(buffer, Deadline::after(20s));
      expect(got && std::string_view(buffer, *got) == "hello");
      stream->close();
    }
    expect(serving.join().has_value());
  });
}

}  // namespace tls_endings_test
