#include <CppUTest/TestHarness.h>
#include <coir/config.h>
#include <coir/fiber.h>
#include <coir/program.h>
#include <coir/tls.h>
#include <string.h>

#include <array>
#include <string_view>

#include "tests/support/scale.h"
#include "tests/support/tls_talk.h"

namespace tls_test {

using coir::Deadline;
using coir::Error;
using coir::ErrorCode;
using coir::spawn;
using coir::TlsContext;
using coir::TlsStream;
using coir::test::Authority;
using coir::test::authority;
using coir::test::patience;
using coir::test::SocketPair;
using namespace std::chrono_literals;

TEST_GROUP_BASE(Tls, coir::test::TlsTalk) {};

TEST(Tls, carries_bytes_both_ways_and_ends_in_good_order) {
  everywhere([&] {
    between(
        [&](TlsStream& stream) {
          char buffer[64];
          const auto got = stream.read(buffer, patience());
          expect(got && std::string_view(buffer, *got) == "ping");
          expect(stream.write("pong", patience()).has_value());
          expect(stream.read(buffer, patience()).error() == ErrorCode::end_of_stream);
        },
        [&](TlsStream& stream) {
          expect(strcmp(stream.version(), "TLSv1.3") == 0);
          expect(stream.write("ping", patience()).has_value());
          char buffer[64];
          const auto got = stream.read(buffer, patience());
          expect(got && std::string_view(buffer, *got) == "pong");
        });
  });
}

TEST(Tls, goes_on_after_a_rest_with_new_buffers) {
  everywhere([&] {
    between(
        [&](TlsStream& stream) {
          char buffer[64];
          for (int i = 0; i < 5; ++i) {
            const auto got = stream.read(buffer, patience());
            expect(got && std::string_view(buffer, *got) == "ping");
            expect(stream.write("pong", patience()).has_value());
            stream.rest();
          }
        },
        [&](TlsStream& stream) {
          char buffer[64];
          for (int i = 0; i < 5; ++i) {
            stream.rest();
            expect(stream.write("ping", patience()).has_value());
            const auto got = stream.read(buffer, patience());
            expect(got && std::string_view(buffer, *got) == "pong");
          }
        });
  });
}

TEST(Tls, carries_more_than_sockets_hold_in_both_directions_at_once) {
  static constexpr std::size_t kBytes = 600'000;
  const auto pour = [this](TlsStream& stream) {
    auto writer = spawn([&] {
      std::array<char, 5000> block;
      for (std::size_t sent = 0; sent < kBytes; sent += block.size()) {
        for (std::size_t i = 0; i < block.size(); ++i) block[i] = static_cast<char>((sent + i) % 251);
        expect(stream.write({block.data(), block.size()}, patience()).has_value());
      }
    });
    std::size_t got = 0;
    while (got < kBytes) {
      std::array<char, 3000> block;
      const auto some = stream.read(block, patience());
      if (!some) break;
      for (std::size_t i = 0; i < *some; ++i) expect(block[i] == static_cast<char>((got + i) % 251));
      got += *some;
    }
    expect(got == kBytes);
    expect(writer.join().has_value());
  };
  everywhere([&] {
    SocketPair pair;
    auto serving = spawn([&] {
      auto stream = TlsStream::accept(std::move(pair.server), server, patience());
      expect(stream.has_value());
      if (stream) pour(*stream);
    });
    auto stream = TlsStream::connect(std::move(pair.client), client, "board.test", patience());
    expect(stream.has_value());
    if (stream) pour(*stream);
    expect(serving.join().has_value());
  });
}

TEST(Tls, refuses_a_server_of_another_name_or_authority) {
  static const Authority other("board.test");
  everywhere([&] {
    struct Case {
      const TlsContext& trusting;
      const char* name;
    };
    const TlsContext strangers = other.client();
    for (const Case& each : {Case{client, "elsewhere.test"}, Case{strangers, "board.test"}}) {
      SocketPair pair;
      const coir::test::Kept kept(pair.client);
      auto serving = spawn([&] {
        const auto stream = TlsStream::accept(std::move(pair.server), server, patience());
        expect(!stream && stream.error() == ErrorCode::alert);
      });
      const auto stream = TlsStream::connect(std::move(pair.client), each.trusting, each.name, patience());
      expect(!stream && stream.error() == ErrorCode::untrusted);
      expect(serving.join().has_value());
    }
  });
}

TEST(Tls, tells_a_connection_that_was_cut_from_one_that_was_ended) {
  everywhere([&] {
    between(
        [&](TlsStream& stream) {
          expect(stream.write("half of it", patience()).has_value());
          // As when the other side's machine goes down: without a closing word.
          stream.tcp().shutdown_write();
          char buffer[8];
          static_cast<void>(stream.read(buffer, patience()));
        },
        [&](TlsStream& stream) {
          char buffer[64];
          expect(stream.read(buffer, patience()).has_value());
          expect(stream.read(buffer, patience()).error() == ErrorCode::truncated);
        });
  });
}

TEST(Tls, ends_a_handshake_at_its_deadline) {
  everywhere([&] {
    SocketPair pair;
    const auto stream = TlsStream::accept(std::move(pair.server), server, Deadline::after(10ms));
    expect(!stream && stream.error() == ErrorCode::timed_out);
  });
  LONGS_EQUAL(0, coir::account::handshakes.used());
}

TEST(Tls, refuses_what_is_no_handshake) {
  everywhere([&] {
    SocketPair pair;
    expect(pair.client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n").has_value());
    const auto stream = TlsStream::accept(std::move(pair.server), server, patience());
    expect(!stream && stream.error() == ErrorCode::protocol);
  });
}

TEST(Tls, has_a_limit_of_pins) {
  const coir::TlsKeyPin pins[TlsContext::kMaxPins + 1] = {};
  const auto refused = TlsContext::client({.accept_any_peer_without_verifying_it = true, .pins = pins});
  CHECK_TRUE(!refused && refused.error() == ErrorCode::limit);
}

TEST(Tls, refuses_handshakes_beyond_the_ceiling_of_their_account) {
  everywhere([&] {
    coir::account::handshakes.set_ceiling(30'000);
    SocketPair first, second, third;
    auto one = spawn([&] { static_cast<void>(TlsStream::accept(std::move(first.server), server, patience())); });
    auto two = spawn([&] { static_cast<void>(TlsStream::accept(std::move(second.server), server, patience())); });
    while (coir::tls_counters().under_way.load() < 2) coir::yield();
    const auto refused = TlsStream::accept(std::move(third.server), server, patience());
    expect(!refused && refused.error() == ErrorCode::limit);
    first.client.close();
    second.client.close();
    expect(one.join().has_value() && two.join().has_value());
    coir::account::handshakes.set_ceiling(SIZE_MAX);
  });
}

TEST(Tls, wakes_a_reader_whose_stream_is_closed) {
  everywhere([&] {
    between(
        [&](TlsStream& stream) {
          auto reader = spawn([&] {
            char buffer[8];
            expect(stream.read(buffer, patience()).error() == ErrorCode::closed);
          });
          until_waits(reader, "readable");
          stream.close();
          expect(reader.join().has_value());
        },
        [&](TlsStream& stream) {
          char buffer[8];
          expect(!stream.read(buffer, patience()));
        });
  });
}

TEST(Tls, connects_over_tcp_and_moves_into_a_stream_of_any_kind) {
  everywhere([&] {
    auto listener = coir::TcpListener::listen(*coir::Address::parse("127.0.0.1:0"));
    expect(listener.has_value());
    if (!listener) return;
    auto serving = spawn([&] {
      auto accepted = listener->accept(patience());
      expect(accepted.has_value());
      if (!accepted) return;
      auto stream = TlsStream::accept(std::move(*accepted), server, patience());
      expect(stream && stream->write("hello", patience()).has_value());
    });
    auto connected = coir::connect_tls(listener->local_address(), "127.0.0.1", client, patience());
    expect(connected.has_value());
    if (connected) {
      coir::Stream any = std::move(*connected);
      char buffer[16];
      const auto got = any.read(buffer, patience());
      expect(any.secure() && got && std::string_view(buffer, *got) == "hello");
      expect(any.read(buffer, patience()).error() == ErrorCode::end_of_stream);
    }
    expect(serving.join().has_value());
  });
}

#if !COIR_SINGLE_WORKER
TEST(Tls, goes_on_on_another_worker_after_every_wait) {
  const auto ended = coir::run_until_idle({.workers = 2, .migrate = true}, [&] {
    between(
        [&](TlsStream& stream) {
          char buffer[64];
          while (const auto got = stream.read(buffer, patience())) {
            expect(stream.write({buffer, *got}, patience()).has_value());
            stream.rest();
          }
        },
        [&](TlsStream& stream) {
          char buffer[64];
          for (int i = 0; i < 20; ++i) {
            expect(stream.write("ping", patience()).has_value());
            const auto got = stream.read(buffer, patience());
            expect(got && std::string_view(buffer, *got) == "ping");
            stream.rest();
          }
        });
  });
  CHECK_TRUE(ended.has_value());
  check();
}
#endif

TEST(Tls, leaves_nothing_on_the_ledger_but_what_the_library_keeps) {
  const auto once = [&] { between([](TlsStream&) {}, [](TlsStream&) {}); };
  // The second has record buffers for each end beside those that are kept for endings.
  for (int i = 0; i < 2; ++i) CHECK_TRUE(coir::run_until_idle({.workers = 1}, once).has_value());
  const std::size_t before = coir::account::tls.used();
  for (int i = 0; i < 3; ++i) CHECK_TRUE(coir::run_until_idle({.workers = 1}, once).has_value());
  LONGS_EQUAL(before, coir::account::tls.used());
  LONGS_EQUAL(0, coir::account::handshakes.used());
  LONGS_EQUAL(0, coir::tls_counters().sessions.load());
  LONGS_EQUAL(0, coir::tls_counters().under_way.load());
}

}  // namespace tls_test
