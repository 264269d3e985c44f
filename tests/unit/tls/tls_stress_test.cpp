// Sessions that are read and written at the same time, wherever their fibers run.
#include <CppUTest/TestHarness.h>
#include <coir/config.h>
#include <coir/fiber.h>
#include <coir/runtime.h>
#include <coir/tls.h>
#include <stdlib.h>

#include <array>
#include <atomic>

#include "tests/support/expectations.h"
#include "tests/support/random.h"
#include "tests/support/scale.h"
#include "tests/support/tls_pair.h"

namespace tls_stress_test {

using coir::Deadline;
using coir::ErrorCode;
using coir::spawn;
using coir::TlsContext;
using coir::TlsStream;
using coir::test::patience;
using coir::test::Random;
using coir::test::SocketPair;
using namespace std::chrono_literals;

namespace {

// COIR_STRESS_SECONDS makes it longer.
Deadline end_of_stress() {
  const char* const seconds = getenv("COIR_STRESS_SECONDS");
  return Deadline::after(seconds != nullptr ? std::chrono::milliseconds(atoi(seconds) * 1000) : 500ms);
}

}  // namespace

TEST_GROUP_BASE(TlsStress, coir::test::Expecting) {
  TlsContext server = coir::test::authority().server();
  TlsContext client = coir::test::authority().client();

  // pour writes a sequence and reads one at the same time, in pieces of random sizes; either is given up now and then,
  // and gone on with.
  void pour(TlsStream& stream, std::size_t bytes, Random random) {
    const auto soon = [](Random& from) { return from.below(4) == 0 ? Deadline::after(from.micros(500)) : patience(); };
    auto writer = spawn({.name = "writer", .stack = 32 * 1024}, [&, mine = random.split()]() mutable {
      std::array<char, 12'000> block;
      for (std::size_t sent = 0; sent < bytes;) {
        const std::size_t size = std::min<std::size_t>(bytes - sent, 1 + mine.below(block.size()));
        for (std::size_t i = 0; i < size; ++i) block[i] = static_cast<char>((sent + i) % 251);
        const iovec part = {block.data(), size};
        const auto some = stream.write_some(std::span(&part, 1), soon(mine));
        expect(some || some.error() == ErrorCode::timed_out);
        if (!some && some.error() != ErrorCode::timed_out) return;
        if (some) sent += *some;
        if (mine.below(8) == 0) stream.rest();
      }
    });
    std::size_t got = 0;
    std::array<char, 7'000> block;
    while (got < bytes) {
      const auto some = stream.read(std::span(block).first(1 + random.below(block.size())), soon(random));
      expect(some || some.error() == ErrorCode::timed_out);
      if (!some && some.error() != ErrorCode::timed_out) break;
      if (!some) continue;
      bool right = true;
      for (std::size_t i = 0; i < *some; ++i) right &= block[i] == static_cast<char>((got + i) % 251);
      expect(right);
      got += *some;
      if (random.below(8) == 0) stream.rest();
    }
    expect(writer.join().has_value());
  }

  void stress(const coir::RunOptions& options) {
    constexpr int kPairs = 4;
    constexpr std::size_t kBytes = coir::test::scaled(
        {.plain = 200'000, .address_sanitized = 100'000, .thread_sanitized = 60'000, .emulated = 20'000});
    const Deadline end = end_of_stress();
    Random random{0x5eed};
    do {
      const auto ended = coir::run_until_idle(options, [&] {
        for (int i = 0; i < kPairs; ++i) {
          spawn({.stack = 32 * 1024}, [&, mine = random.split()]() mutable {
            SocketPair pair;
            auto serving = spawn({.stack = 32 * 1024}, [&, its = mine.split()] {
              auto stream = TlsStream::accept(std::move(pair.server), server, patience());
              expect(stream.has_value());
              if (stream) pour(*stream, kBytes, its);
            });
            auto stream = TlsStream::connect(std::move(pair.client), client, "board.test", patience());
            expect(stream.has_value());
            if (stream) pour(*stream, kBytes, mine.split());
            expect(serving.join().has_value());
          }).detach();
        }
      });
      CHECK_TRUE(ended.has_value());
      check();
    } while (!end.passed());
    LONGS_EQUAL(0, coir::tls_counters().sessions.load());
    LONGS_EQUAL(0, coir::account::handshakes.used());
  }
};

TEST(TlsStress, reads_and_writes_at_once_on_one_worker) {
  stress({.workers = 1});
}

TEST(TlsStress, reads_and_writes_at_once_on_several_workers) {
  stress({.workers = 3});
}

#if !COIR_SINGLE_WORKER
TEST(TlsStress, reads_and_writes_at_once_on_workers_that_exchange_every_fiber) {
  stress({.workers = 3, .migrate = true});
}
#endif

}  // namespace tls_stress_test
