// TLS where nothing is a fiber: in the build without them, and on plain threads. The peer is another process, for in
// builds with one worker no second thread may touch the ledger.
#include <CppUTest/TestHarness.h>
#include <coir/config.h>
#include <coir/tls.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string_view>

#include "tests/support/thread.h"
#include "tests/support/tls_pair.h"

namespace tls_blocking_test {

using coir::Deadline;
using coir::ErrorCode;
using coir::TlsContext;
using coir::TlsStream;
using coir::test::authority;
using coir::test::patience;
using coir::test::SocketPair;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kMuch = 300'000;

// Peer is a client in another process; its exit status is what `ask` returns, 0 when all was right.
class Peer {
 public:
  template <class Ask>
  Peer(SocketPair& pair, const TlsContext& context, Ask ask) noexcept : process_(::fork()) {
    if (process_ != 0) {
      pair.client.close();
      return;
    }
    ::alarm(100);
    pair.server.close();
    const int kept = ::dup(pair.client.fd());
    auto stream = TlsStream::connect(std::move(pair.client), context, "board.test", patience());
    if (!stream) {
      // The server's last writes must not fail, or it does not get to read what this side has sent.
      pollfd gone = {.fd = kept, .events = POLLRDHUP, .revents = 0};
      ::poll(&gone, 1, -1);
      ::_exit(100);
    }
    ::close(kept);
    const int status = ask(*stream);
    stream->close();
    ::_exit(status);
  }
  ~Peer() { LONGS_EQUAL(0, end()); }

  int end() noexcept {
    if (process_ <= 0) return 0;
    int status = 0;
    while (::waitpid(process_, &status, 0) < 0) {
    }
    process_ = 0;
    return status;
  }

 private:
  pid_t process_;
};

char at(std::size_t place) noexcept {
  return static_cast<char>(place % 251);
}

bool take(coir::Stream& stream, std::size_t bytes) noexcept {
  std::array<char, 3000> block;
  for (std::size_t place = 0; place < bytes;) {
    const auto got = stream.read(block, patience());
    if (!got) return false;
    for (std::size_t i = 0; i < *got; ++i) {
      if (block[i] != at(place + i)) return false;
    }
    place += *got;
  }
  return true;
}

bool pour(coir::Stream& stream, std::size_t bytes) noexcept {
  std::array<char, 5000> block;
  for (std::size_t place = 0; place < bytes; place += block.size()) {
    for (std::size_t i = 0; i < block.size(); ++i) block[i] = at(place + i);
    if (!stream.write({block.data(), block.size()}, patience())) return false;
  }
  return true;
}

}  // namespace

TEST_GROUP(TlsBlocking) {
  TlsContext server = authority().server();
  TlsContext client = authority().client();
  SocketPair pair;

  void teardown() override {
    LONGS_EQUAL(0, coir::account::handshakes.used());
    LONGS_EQUAL(0, coir::tls_counters().sessions.load());
    LONGS_EQUAL(0, coir::tls_counters().under_way.load());
  }
};

TEST(TlsBlocking, carries_much_both_ways_and_ends_in_good_order) {
  const Peer peer(pair, client, [](TlsStream& stream) {
    if (!pour(stream, kMuch) || !take(stream, kMuch) || !stream.write("x", patience())) return 1;
    char byte[1];
    return stream.read(byte, patience()).error() == ErrorCode::end_of_stream ? 0 : 2;
  });
  auto stream = TlsStream::accept(std::move(pair.server), server, patience());
  CHECK_TRUE(stream.has_value());
  CHECK_TRUE(take(*stream, kMuch));
  stream->rest();
  CHECK_TRUE(pour(*stream, kMuch));
  // Everything has arrived, so that there is room for the closing word.
  char byte[1];
  CHECK_TRUE(stream->read(byte, patience()).has_value());
  stream->close();
}

TEST(TlsBlocking, handshake_ends_at_its_deadline) {
  const std::int64_t began = coir::monotonic_ns();
  const auto stream = TlsStream::accept(std::move(pair.server), server, Deadline::after(30ms));
  CHECK_TRUE(!stream && stream.error() == ErrorCode::timed_out);
  CHECK_TRUE(coir::monotonic_ns() - began >= 30'000'000);
}

TEST(TlsBlocking, read_and_write_end_at_their_deadline_and_go_on) {
  int gate[2];
  LONGS_EQUAL(0, ::pipe(gate));
  const Peer peer(pair, client, [&gate](TlsStream& stream) {
    char buffer[8];
    const auto got = stream.read({buffer, 2}, patience());
    if (!got || std::string_view(buffer, *got) != "go" || !stream.write("late", patience())) return 1;
    // It reads nothing until the other has given up.
    char byte;
    if (::read(gate[0], &byte, 1) != 1) return 3;
    return take(stream, kMuch) ? 0 : 2;
  });
  auto stream = TlsStream::accept(std::move(pair.server), server, patience());
  CHECK_TRUE(stream.has_value());
  char buffer[8];
  CHECK_TRUE(stream->read(buffer, Deadline::after(10ms)).error() == ErrorCode::timed_out);
  CHECK_TRUE(stream->write("go", patience()).has_value());
  const auto got = stream->read(buffer, patience());
  CHECK_TRUE(got && std::string_view(buffer, *got) == "late");
  bool given_up = false;
  std::array<char, 9000> block;
  for (std::size_t sent = 0; sent < kMuch;) {
    for (std::size_t i = 0; i < block.size(); ++i) block[i] = at(sent + i);
    const iovec part = {block.data(), block.size()};
    const auto some = stream->write_some(std::span(&part, 1), given_up ? patience() : Deadline::after(5ms));
    CHECK_TRUE(some || some.error() == ErrorCode::timed_out);
    if (!some && !given_up) {
      given_up = true;
      LONGS_EQUAL(1, ::write(gate[1], "", 1));
    }
    if (some) sent += *some;
  }
  CHECK_TRUE(given_up);
  char byte[1];
  CHECK_FALSE(stream->read(byte, patience()).has_value());
  ::close(gate[0]);
  ::close(gate[1]);
}

TEST(TlsBlocking, connection_that_was_cut_is_truncated) {
  const Peer peer(pair, client, [](TlsStream& stream) {
    if (!stream.write("half of it", patience())) return 1;
    stream.tcp().shutdown_write();
    char byte[1];
    static_cast<void>(stream.read(byte, patience()));
    return 0;
  });
  auto stream = TlsStream::accept(std::move(pair.server), server, patience());
  CHECK_TRUE(stream.has_value());
  char buffer[16];
  CHECK_TRUE(stream->read(buffer, patience()).has_value());
  CHECK_TRUE(stream->read(buffer, patience()).error() == ErrorCode::truncated);
}

TEST(TlsBlocking, refuses_who_is_not_trusted) {
  static const coir::test::Authority other("board.test");
  const TlsContext strangers = other.client();
  Peer peer(pair, strangers, [](TlsStream&) { return 0; });
  {
    const auto stream = TlsStream::accept(std::move(pair.server), server, patience());
    CHECK_TRUE(!stream && stream.error() == ErrorCode::alert);
  }
  LONGS_EQUAL(100, WEXITSTATUS(peer.end()));
}

#if !COIR_SINGLE_WORKER && !COIR_NO_ASYNC
TEST(TlsBlocking, threads_read_and_write_one_stream_at_once) {
  const Peer peer(pair, client, [](TlsStream& stream) {
    // In small steps, so that both directions are under way.
    for (int i = 0; i < 20; ++i) {
      if (!pour(stream, 5'000) || !take(stream, 5'000)) return 1;
    }
    return 0;
  });
  auto stream = TlsStream::accept(std::move(pair.server), server, patience());
  CHECK_TRUE(stream.has_value());
  bool written = true, read = true;
  {
    const coir::test::Thread writer([&] {
      for (int i = 0; i < 20; ++i) written = written && pour(*stream, 5'000);
    });
    const coir::test::Thread reader([&] {
      for (int i = 0; i < 20; ++i) read = read && take(*stream, 5'000);
    });
  }
  CHECK_TRUE(written && read);
}

TEST(TlsBlocking, threads_have_sessions_beside_each_other) {
  constexpr int kThreads = 4;
  std::array<bool, kThreads> right{};
  const auto serve = [&](int number) {
    SocketPair mine;
    coir::test::Thread other([&] {
      auto stream = TlsStream::connect(std::move(mine.client), client, "board.test", patience());
      right[static_cast<std::size_t>(number)] = stream && pour(*stream, 50'000);
    });
    auto stream = TlsStream::accept(std::move(mine.server), server, patience());
    const bool taken = stream && take(*stream, 50'000);
    other.join();
    right[static_cast<std::size_t>(number)] &= taken;
  };
  {
    const coir::test::Thread a([&] { serve(0); }), b([&] { serve(1); }), c([&] { serve(2); }), d([&] { serve(3); });
  }
  for (const bool each : right) CHECK_TRUE(each);
}

TEST(TlsBlocking, thread_that_reads_is_woken_by_close) {
  int gate[2];
  LONGS_EQUAL(0, ::pipe(gate));
  // The peer neither answers nor leaves before the reader has.
  const Peer peer(pair, client, [&gate](TlsStream&) {
    char byte;
    return ::read(gate[0], &byte, 1) == 1 ? 0 : 1;
  });
  auto stream = TlsStream::accept(std::move(pair.server), server, patience());
  CHECK_TRUE(stream.has_value());
  bool right = false;
  {
    const coir::test::Thread reader([&] {
      char byte[1];
      right = stream->read(byte, patience()).error() == ErrorCode::closed;
    });
    reader.until_blocked();
    stream->close();
  }
  LONGS_EQUAL(1, ::write(gate[1], "", 1));
  CHECK_TRUE(right);
  ::close(gate[0]);
  ::close(gate[1]);
}

TEST(TlsBlocking, thread_may_say_the_closing_word_while_another_reads) {
  const Peer peer(pair, client, [](TlsStream& stream) {
    char byte[1];
    return stream.read(byte, patience()).error() == ErrorCode::end_of_stream && stream.write("x", patience()) ? 0 : 1;
  });
  auto stream = TlsStream::accept(std::move(pair.server), server, patience());
  CHECK_TRUE(stream.has_value());
  bool right = false;
  {
    const coir::test::Thread reader([&] {
      char buffer[8];
      right = stream->read(buffer, patience()).has_value() &&
              stream->read(buffer, patience()).error() == ErrorCode::end_of_stream;
    });
    stream->shutdown_write();
  }
  CHECK_TRUE(right);
}
#endif

}  // namespace tls_blocking_test
