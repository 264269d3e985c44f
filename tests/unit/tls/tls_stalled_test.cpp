// How handshakes end whose peer falls silent: by deadline and by cancellation, in every flight.
#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/program.h>
#include <coir/tls.h>

#include <algorithm>
#include <atomic>

#include "tests/support/everywhere.h"
#include "tests/support/scale.h"
#include "tests/support/tls_inside.h"
#include "tests/support/tls_pair.h"

namespace tls_stalled_test {

using coir::Deadline;
using coir::ErrorCode;
using coir::spawn;
using coir::TcpStream;
using coir::TlsContext;
using coir::TlsStream;
using coir::test::authority;
using coir::test::patience;
using coir::test::SocketPair;
using namespace std::chrono_literals;

namespace {

// Relay stands between a client and a server and passes on what they say, up to `most` bytes in all.
struct Relay {
  SocketPair of_client, of_server;
  std::size_t most = SIZE_MAX;
  std::atomic<std::size_t> passed = 0;
  std::size_t turns[16] = {};  // where one side had said all and the other began
  std::size_t turn_count = 0;
  std::atomic<const TcpStream*> last = nullptr;

  // pass carries one direction, until its end or the relay's.
  void pass(TcpStream& from, TcpStream& to) noexcept {
    char block[4096];
    for (;;) {
      const auto got = from.read(block, patience());
      if (!got) return;
      if (last != &from && turn_count < std::size(turns)) turns[turn_count++] = passed;
      last = &from;
      // One side speaks at a time.
      const std::size_t count = std::min(*got, most - passed);
      if (!to.write({block, count}, patience()) || (passed += count) == most) return;
    }
  }
};

}  // namespace

TEST_GROUP_BASE(TlsStalled, coir::test::Everywhere) {
  TlsContext server = authority().server();
  TlsContext client = authority().client();

  // stalled runs a handshake of which no more than `most` bytes are said in all, and has `give_up` end it. False: its
  // deadline passed before so many were said, so that nothing was promised.
  template <class GiveUp>
  bool stalled(const TlsContext& by_server, const TlsContext& by_client, std::size_t most, Deadline deadline,
               ErrorCode wanted, GiveUp give_up) {
    bool in_time = true;
    const auto ended = coir::run_until_idle({.workers = 2}, [&] {
      Relay relay;
      relay.most = most;
      bool serve_ended = false, ask_ended = false;
      auto up = spawn({.stack = 16 * 1024}, [&] { relay.pass(relay.of_client.server, relay.of_server.client); });
      auto down = spawn({.stack = 16 * 1024}, [&] { relay.pass(relay.of_server.client, relay.of_client.server); });
      auto serving = spawn({.name = "server", .stack = 8 * 1024}, [&] {
        const auto stream = TlsStream::accept(std::move(relay.of_server.server), by_server, deadline);
        serve_ended = !stream && stream.error() == wanted;
      });
      auto asking = spawn({.name = "client", .stack = 8 * 1024}, [&] {
        auto stream = TlsStream::connect(std::move(relay.of_client.client), by_client, "board.test", deadline);
        // A client by TLS 1.3 is done when it has spoken last, heard or not.
        ask_ended = stream ? stream->version()[6] == '3' : stream.error() == wanted;
      });
      while (relay.passed < most && !deadline.passed()) coir::yield();
      in_time = !deadline.passed();
      give_up(serving, asking);
      expect(serving.join().has_value());
      expect(asking.join().has_value());
      expect(!in_time || (serve_ended && ask_ended));
      static_cast<void>(up.cancel());
      static_cast<void>(down.cancel());
      expect(up.join().has_value() && down.join().has_value());
    });
    CHECK_TRUE(ended.has_value());
    check();
    LONGS_EQUAL(0, coir::account::handshakes.used());
    LONGS_EQUAL(0, coir::tls_counters().under_way.load());
    return in_time;
  }

  // at_each_flight calls `stall` with a number of bytes before, in the middle of and at the end of every flight.
  template <class Stall>
  void at_each_flight(Stall stall) {
    for (const bool tls12 : {false, true}) {
      if (tls12 && !coir::test::kTls12) continue;
      const TlsContext by_client = tls12 ? coir::test::without_tls13(authority().client()) : client;
      Relay whole;
      const auto ended = coir::run_until_idle({.workers = 1}, [&] {
        auto up = spawn({.stack = 16 * 1024}, [&] { whole.pass(whole.of_client.server, whole.of_server.client); });
        auto down = spawn({.stack = 16 * 1024}, [&] { whole.pass(whole.of_server.client, whole.of_client.server); });
        auto serving = spawn([&] {
          auto stream = TlsStream::accept(std::move(whole.of_server.server), server, patience());
          char byte[1];
          expect(stream && stream->read(byte, patience()).has_value());
        });
        auto stream = TlsStream::connect(std::move(whole.of_client.client), by_client, "board.test", patience());
        expect(stream && stream->write("x", patience()).has_value());
        expect(serving.join().has_value());
        static_cast<void>(up.cancel());
        static_cast<void>(down.cancel());
      });
      CHECK_TRUE(ended.has_value());
      check();
      CHECK(whole.turn_count >= 3);
      // The server is done within its client's last flight at the latest: by TLS 1.3 that is the third.
      const std::size_t last = std::min<std::size_t>(whole.turn_count, tls12 ? 4 : 3);
      for (std::size_t flight = 0; flight + 1 < last; ++flight) {
        const std::size_t begin = whole.turns[flight], end = whole.turns[flight + 1];
        stall(by_client, begin + 1);
        stall(by_client, begin + (end - begin) / 2);
        // A signature of this handshake may be some bytes shorter than the one that was measured.
        if (!coir::test::kEmulated) stall(by_client, end - 8);
      }
    }
  }
};

TEST(TlsStalled, handshake_ends_at_its_deadline_in_every_flight) {
  at_each_flight([&](const TlsContext& by_client, std::size_t most) {
    // Long enough, on a machine that is not busy, for what is said to be said.
    auto time = coir::test::kEmulated ? 300ms : 100ms;
    while (!stalled(server, by_client, most, Deadline::after(time), ErrorCode::timed_out,
                    [](coir::Fiber&, coir::Fiber&) {})) {
      time *= 2;
    }
  });
}

TEST(TlsStalled, handshake_can_be_cancelled_in_every_flight) {
  at_each_flight([&](const TlsContext& by_client, std::size_t most) {
    CHECK_TRUE(stalled(server, by_client, most, patience(), ErrorCode::cancelled,
                       [](coir::Fiber& serving, coir::Fiber& asking) {
                         static_cast<void>(serving.cancel());
                         static_cast<void>(asking.cancel());
                       }));
  });
}

}  // namespace tls_stalled_test
