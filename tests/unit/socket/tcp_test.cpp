// TcpStream and TcpListener work alike between fibers and between plain threads: the same calls have the same outcomes.

#include <CppUTest/TestHarness.h>
#include <coir/atomic.h>
#include <coir/fiber.h>
#include <coir/runtime.h>
#include <coir/select.h>
#include <coir/tcp.h>
#include <coir/wait.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <source_location>

#include "tests/support/pipe.h"
#include "tests/support/thread.h"
#include "tests/support/until.h"

namespace tcp_test {

using namespace std::chrono_literals;
using coir::Address;
using coir::Deadline;
using coir::ErrorCode;
using coir::TcpListener;
using coir::TcpStream;
using coir::test::until;
using coir::test::until_polled;

namespace {

const Deadline soon() {
  return Deadline::after(60s);
}

// expect notes the first failure of either side: the framework's own checks are for the thread of the test alone.
std::atomic<unsigned> failed_line;

void expect(bool holds, std::source_location where = std::source_location::current()) {
  unsigned none = 0;
  if (!holds) failed_line.compare_exchange_strong(none, where.line());
}

void expect_equal(std::size_t wanted, std::size_t got, std::source_location where = std::source_location::current()) {
  expect(wanted == got, where);
}

// A test is two sides that meet at a listener. They are run twice: as two fibers, and as two threads without a runtime.
struct Meeting {
  TcpListener listener;
  void (*server)(TcpStream&&) = nullptr;
  void (*client)(TcpStream&&) = nullptr;

  void serve() {
    auto accepted = listener.accept(soon());
    expect(accepted.has_value());
    if (accepted) server(std::move(*accepted));
  }
  void visit() {
    auto connected = TcpStream::connect(listener.local_address(), soon());
    expect(connected.has_value());
    if (connected) client(std::move(*connected));
  }
};

TcpListener listen_on(const char* where) {
  auto listener = TcpListener::listen(*Address::parse(where));
  CHECK(listener.has_value());
  return std::move(*listener);
}

void meet(void (*server)(TcpStream&&), void (*client)(TcpStream&&), const char* where = "127.0.0.1:0") {
  {
    Meeting meeting{listen_on(where), server, client};
    auto ran = coir::run_until_idle({}, [&] {
      coir::Fiber side = coir::spawn({.name = "server", .stack = 32 * 1024}, [&] { meeting.serve(); });
      coir::Fiber other = coir::spawn({.name = "client", .stack = 32 * 1024}, [&] { meeting.visit(); });
      expect(side.join(soon()).has_value());
      expect(other.join(soon()).has_value());
    });
    CHECK(ran.has_value());
    LONGS_EQUAL_TEXT(0, failed_line, "the line of the first failure, between fibers");
  }
  Meeting meeting{listen_on(where), server, client};
  pthread_t thread;
  CHECK_EQUAL(0, pthread_create(
                     &thread, nullptr,
                     [](void* argument) -> void* {
                       static_cast<Meeting*>(argument)->serve();
                       return nullptr;
                     },
                     &meeting));
  meeting.visit();
  CHECK_EQUAL(0, pthread_join(thread, nullptr));
  LONGS_EQUAL_TEXT(0, failed_line, "the line of the first failure");
}

// Bytes whose place shows in their value.
constexpr std::size_t kMuch = 3'000'000;
char pattern(std::size_t at) {
  return static_cast<char>(at * 7 + at / 251);
}

char out[kMuch];
char in[kMuch];

void fill() {
  for (std::size_t i = 0; i < kMuch; ++i) out[i] = pattern(i);
  memset(in, 0, sizeof in);
}

// read_all reads up to the end and returns how much that was.
std::size_t read_all(TcpStream& stream) {
  std::size_t have = 0;
  for (;;) {
    auto got = stream.read({in + have, have < kMuch ? kMuch - have : 1}, soon());
    if (!got) {
      expect(got.error() == ErrorCode::end_of_stream);
      return have;
    }
    have += *got;
  }
}

}  // namespace

TEST_GROUP(Tcp) {
  void setup() override { fill(); }  // namespace tcp_test
};

TEST(Tcp, a_message_goes_there_and_back) {
  meet(
      [](TcpStream&& stream) {
        char text[16];
        auto got = stream.read(text, soon());
        expect(got.has_value());
        expect(stream.write({text, *got}, soon()).has_value());
      },
      [](TcpStream&& stream) {
        expect(stream.write("hello", soon()).has_value());
        char text[16];
        auto got = stream.read(text, soon());
        expect(got.has_value());
        expect(strncmp("hello", text, 5) == 0);
        expect(stream.read(text, soon()).error() == ErrorCode::end_of_stream);
      });
}

TEST(Tcp, a_short_read_has_drained_the_socket) {
  auto listener = listen_on("127.0.0.1:0");
  auto here = TcpStream::connect(listener.local_address(), soon());
  auto there = listener.accept(soon());
  char text[4];
  CHECK(here->write("ab", soon()).has_value());
  CHECK(coir::wait(there->fd(), coir::Direction::readable, soon()).has_value());
  LONGS_EQUAL(2, *there->read(text, soon()));
  CHECK(there->drained());
  CHECK(there->read(text, Deadline::now()).error() == ErrorCode::timed_out);
  CHECK(here->write("abcd", soon()).has_value());
  there->mark_readable();
  LONGS_EQUAL(4, *there->read(text, soon()));
  CHECK_FALSE(there->drained());
}

namespace {
std::atomic<bool> shut;
}  // namespace

TEST(Tcp, an_end_that_comes_while_bytes_are_unread_is_found_after_them) {
  meet(
      [](TcpStream&& stream) {
        char text[16];
        // Known to the poller before anything comes.
        expect(stream.read(text, Deadline::after(1ms)).error() == ErrorCode::timed_out);
        expect(stream.write("go", soon()).has_value());
        until([] { return shut.exchange(false); });
        until_polled();
        expect_equal(5, stream.read(text, soon()).value_or(0));
        expect(stream.read(text, soon()).error() == ErrorCode::end_of_stream);
      },
      [](TcpStream&& stream) {
        char text[16];
        expect_equal(2, stream.read(text, soon()).value_or(0));
        expect(stream.write("hello", soon()).has_value());
        until_polled();
        stream.shutdown_write();
        shut = true;
        expect(stream.read(text, soon()).error() == ErrorCode::end_of_stream);
      });
}

TEST(Tcp, more_than_any_buffer_arrives_whole_and_in_order) {
  meet([](TcpStream&& stream) { expect(stream.write({out, kMuch}, soon()).has_value()); },
       [](TcpStream&& stream) {
         expect_equal(kMuch, read_all(stream));
         expect(memcmp(in, out, kMuch) == 0);
       });
}

TEST(Tcp, writev_sends_every_part_and_uses_them_up) {
  meet(
      [](TcpStream&& stream) {
        iovec parts[] = {
            {out, 0}, {out, 1}, {out + 1, 1'000'000}, {out + 1'000'001, 0}, {out + 1'000'001, kMuch - 1'000'001}};
        expect(stream.writev(parts, soon()).has_value());
        for (const iovec& part : parts) expect_equal(0, part.iov_len);
      },
      [](TcpStream&& stream) {
        expect_equal(kMuch, read_all(stream));
        expect(memcmp(in, out, kMuch) == 0);
      });
}

TEST(Tcp, send_file_sends_a_file_and_tells_its_end) {
  meet(
      [](TcpStream&& stream) {
        FILE* file = tmpfile();
        expect(file != nullptr);
        expect_equal(kMuch, fwrite(out, 1, kMuch, file));
        expect_equal(0, fflush(file));
        std::size_t at = 10;
        for (;;) {
          auto sent = stream.send_file(fileno(file), at, kMuch, soon());
          expect(sent.has_value() || sent.error() == ErrorCode::end_of_stream);
          if (!sent) break;
          at += *sent;
        }
        expect_equal(kMuch, at);
        fclose(file);
      },
      [](TcpStream&& stream) {
        expect_equal(kMuch - 10, read_all(stream));
        expect(memcmp(in, out + 10, kMuch - 10) == 0);
      });
}

TEST(Tcp, half_close_ends_one_direction_only) {
  meet(
      [](TcpStream&& stream) {
        char text[8];
        expect_equal(5, stream.read(text, soon()).value_or(0));
        expect(stream.read(text, soon()).error() == ErrorCode::end_of_stream);
        expect(stream.write("answer", soon()).has_value());
      },
      [](TcpStream&& stream) {
        expect(stream.write("asked", soon()).has_value());
        stream.shutdown_write();
        expect_equal(6, read_all(stream));
        expect(strncmp("answer", in, 6) == 0);
        expect(stream.write("more", soon()).error() == ErrorCode::closed);
      });
}

TEST(Tcp, a_read_and_a_write_end_at_their_deadline) {
  static std::atomic<bool> given_up;
  given_up = false;
  meet(
      [](TcpStream&& stream) {
        char text[4];
        expect(stream.read(text, Deadline::after(20ms)).error() == ErrorCode::timed_out);
        expect(stream.read(text, Deadline::now()).error() == ErrorCode::timed_out);
        // The peer reads nothing until this side has given up.
        for (;;) {
          if (auto sent = stream.write({out, kMuch}, Deadline::after(50ms)); !sent) {
            expect(sent.error() == ErrorCode::timed_out);
            break;
          }
        }
        given_up = true;
      },
      [](TcpStream&& stream) {
        until([] { return given_up.exchange(false); });
        expect(stream.read({in, kMuch}, soon()).has_value());
      });
}

TEST(Tcp, a_reset_is_closed_and_raises_no_signal) {
  signal(SIGPIPE, SIG_DFL);
  meet(
      [](TcpStream&& stream) {
        const linger now = {.l_onoff = 1, .l_linger = 0};
        setsockopt(stream.fd(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
        char text[4];
        expect(stream.read(text, soon()).has_value());
      },
      [](TcpStream&& stream) {
        expect(stream.write("x", soon()).has_value());
        char text[4];
        expect(stream.read(text, soon()).error() == ErrorCode::closed);
        expect(stream.write("x", soon()).error() == ErrorCode::closed);
        iovec part = {text, 1};
        expect(stream.writev({&part, 1}, soon()).error() == ErrorCode::closed);
      });
}

TEST(Tcp, serves_ipv6_and_both_families_on_one_port) {
  const auto server = [](TcpStream&& stream) { expect(stream.write("6", soon()).has_value()); };
  const auto client = [](TcpStream&& stream) { expect_equal(1, read_all(stream)); };
  auto probe = TcpListener::listen(*Address::parse("[::1]:0"));
  if (probe) meet(server, client, "[::1]:0");
  auto any = listen_on("*:0");
  char text[32] = {};
  snprintf(text, sizeof text, "127.0.0.1:%u", any.local_address().port());
  CHECK(TcpStream::connect(*Address::parse(text), soon()).has_value());
  if (!probe) return;
  snprintf(text, sizeof text, "[::1]:%u", any.local_address().port());
  CHECK(TcpStream::connect(*Address::parse(text), soon()).has_value());
}

TEST(Tcp, connect_reports_a_refusal) {
  auto listener = listen_on("127.0.0.1:0");
  const Address address = listener.local_address();
  CHECK(address.port() != 0);
  listener.close();
  auto on_thread = TcpStream::connect(address, soon());
  CHECK_FALSE(on_thread.has_value());
  LONGS_EQUAL(ECONNREFUSED, on_thread.error().sys);
  auto ran = coir::run_until_idle({}, [&] {
    auto on_fiber = TcpStream::connect(address, soon());
    CHECK_FALSE(on_fiber.has_value());
    LONGS_EQUAL(ECONNREFUSED, on_fiber.error().sys);
  });
  CHECK(ran.has_value());
}

TEST(Tcp, a_port_in_use_is_reported) {
  auto listener = listen_on("127.0.0.1:0");
  auto second = TcpListener::listen(listener.local_address());
  CHECK_FALSE(second.has_value());
  LONGS_EQUAL(EADDRINUSE, second.error().sys);
}

TEST(Tcp, accept_ends_at_its_deadline) {
  auto listener = listen_on("127.0.0.1:0");
  CHECK(listener.accept(Deadline::after(10ms)).error() == ErrorCode::timed_out);
}

TEST(Tcp, a_fiber_that_reads_is_woken_by_close) {
  auto listener = listen_on("127.0.0.1:0");
  auto ran = coir::run_until_idle({}, [&] {
    auto here = TcpStream::connect(listener.local_address(), soon());
    CHECK(here.has_value());
    coir::Fiber reader = coir::spawn({.name = "reader", .stack = 32 * 1024}, [&] {
      char text[4];
      expect(here->read(text, soon()).error() == ErrorCode::closed);
    });
    coir::test::until_parked(reader, "readable");
    here->close();
    CHECK(reader.join(soon()).has_value());
  });
  CHECK(ran.has_value());
  LONGS_EQUAL(0, failed_line);
}

TEST(Tcp, the_number_of_a_closed_stream_stays_taken_until_its_reader_has_left) {
  auto listener = listen_on("127.0.0.1:0");
  auto ran = coir::run_until_idle({.workers = 1}, [&] {
    auto here = TcpStream::connect(listener.local_address(), soon());
    auto there = listener.accept(soon());
    expect(here.has_value() && there.has_value());
    const int number = here->fd();
    coir::Fiber reader = coir::spawn({.name = "reader", .stack = 32 * 1024}, [&] {
      char text[4];
      expect(here->read(text, soon()).error() == ErrorCode::closed);
    });
    coir::test::until_parked(reader, "readable");
    here->close();
    expect(!here->is_open() && here->fd() == -1);
    // The reader has not run since.
    const int next = dup(listener.fd());
    expect(next >= 0 && next != number);
    ::close(next);
    // The peer hears of it all the same.
    char text[4];
    expect(there->read(text, soon()).error() == ErrorCode::end_of_stream);
    expect(reader.join(soon()).has_value());
    expect(fcntl(number, F_GETFD) < 0);
    expect(here->read(text, soon()).error() == ErrorCode::closed);
    expect(here->write("x", soon()).error() == ErrorCode::closed);
  });
  CHECK(ran.has_value());
  LONGS_EQUAL(0, failed_line);
}

TEST(Tcp, bytes_that_a_select_has_reported_are_read_without_waiting) {
  auto listener = listen_on("127.0.0.1:0");
  auto ran = coir::run_until_idle({}, [&] {
    auto here = TcpStream::connect(listener.local_address(), soon());
    auto there = listener.accept(soon());
    char text[8];
    for (int turn = 0; turn < 3; ++turn) {
      expect(there->write("abc", soon()).has_value());
      const auto won = coir::select({coir::Case::readable(here->fd())}, soon());
      expect(won.has_value());
      expect_equal(3, here->read(text, Deadline::now()).value_or(0));  // a short read: it has drained the socket
      const auto nothing = here->read(text, Deadline::now());
      expect(!nothing && nothing.error() == ErrorCode::timed_out);
    }
  });
  CHECK(ran.has_value());
  LONGS_EQUAL(0, failed_line);
}

TEST(Tcp, a_fiber_that_accepts_is_woken_by_close) {
  for (const char* where : {"127.0.0.1:0", "unix:@coir-tcp-test-accepts"}) {
    auto listener = listen_on(where);
    auto ran = coir::run_until_idle({}, [&] {
      coir::Fiber acceptor = coir::spawn({.name = "acceptor", .stack = 32 * 1024},
                                         [&] { expect(listener.accept(soon()).error() == ErrorCode::closed); });
      coir::test::until_parked(acceptor, "readable");
      listener.close();
      expect(acceptor.join(soon()).has_value());
      expect(listener.accept(soon()).error() == ErrorCode::closed);
    });
    CHECK(ran.has_value());
    LONGS_EQUAL(0, failed_line);
  }
}

TEST(Tcp, threads_that_read_and_accept_are_woken_by_close) {
  if (!coir::kManyWorkers) return;
  auto listener = listen_on("127.0.0.1:0");
  auto here = TcpStream::connect(listener.local_address(), soon());
  CHECK(here.has_value());
  auto there = listener.accept(soon());
  CHECK(there.has_value());
  {
    coir::test::Thread reader([&] {
      char text[4];
      expect(here->read(text, soon()).error() == ErrorCode::closed);
    });
    coir::test::Thread acceptor([&] { expect(listener.accept(soon()).error() == ErrorCode::closed); });
    reader.until_blocked();
    acceptor.until_blocked();
    here->close();
    listener.close();
  }
  LONGS_EQUAL(0, failed_line);
}

TEST(Tcp, a_stream_that_is_closed_at_any_moment_reads_from_no_other) {
  if (!coir::kManyWorkers) return;
  auto listener = listen_on("127.0.0.1:0");
  for (int turn = 0; turn < 200; ++turn) {
    auto here = TcpStream::connect(listener.local_address(), soon());
    CHECK(here.has_value());
    auto there = listener.accept(soon());
    CHECK(there.has_value());
    coir::test::Thread reader([&] {
      char text[4];
      expect(here->read(text, soon()).error() == ErrorCode::closed);
      expect(here->read(text, soon()).error() == ErrorCode::closed);
    });
    here->close();
    // Its number would be taken by the next; whoever still read would take the byte.
    coir::test::Pipe next;
    expect(next.put());
    reader.join();
    char byte;
    expect_equal(1, static_cast<std::size_t>(::read(next.reader, &byte, 1)));
  }
  LONGS_EQUAL(0, failed_line);
}

}  // namespace tcp_test
