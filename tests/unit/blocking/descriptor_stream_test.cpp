#include <coir/descriptor_stream.h>
#include <coir/file.h>

#include <CppUTest/TestHarness.h>
#include <coir/cancel_scope.h>
#include <coir/stream_lines.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "tests/support/both_sides.h"
#include "tests/support/folder.h"
#include "tests/support/pipe.h"
#include "tests/support/scale.h"
#include "tests/support/until.h"

namespace descriptor_stream_test {

using namespace std::chrono_literals;
using coir::Deadline;
using coir::DescriptorStream;
using coir::Direction;
using coir::Error;
using coir::ErrorCode;
using coir::test::count_fds;
using coir::test::fds_are_back_to;
using coir::test::Folder;
using coir::test::holds;
using coir::test::put;

namespace {

Deadline patience() {
  return Deadline::after(60s);
}

bool blocks(int fd) {
  return (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0;
}

// Ends are the two sides of a pipe that blocks, as a shell makes them.
struct Ends {
  int reader, writer;
  Ends() {
    int fds[2] = {-1, -1};
    [[maybe_unused]] const int made = pipe2(fds, O_CLOEXEC);
    reader = fds[0];
    writer = fds[1];
  }
};

// Terminal is the side of a program (`inside`) and that of whoever shows it (`outside`), both raw.
struct Terminal {
  int outside = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  int inside = -1;
  Terminal() {
    if (outside < 0 || grantpt(outside) != 0 || unlockpt(outside) != 0) return;
    const char* const name = ptsname(outside);
    if (name != nullptr) inside = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (inside < 0) return;
    termios how;
    tcgetattr(inside, &how);
    cfmakeraw(&how);
    tcsetattr(inside, TCSANOW, &how);
  }
};

template <class T>
bool is(const std::expected<T, Error>& outcome, ErrorCode code) {
  return !outcome && outcome.error() == code;
}

bool reads(DescriptorStream& stream, std::string_view wanted) {
  char got[256];
  std::size_t used = 0;
  while (used < wanted.size()) {
    const auto size = stream.read(std::span(got).subspan(used), patience());
    if (!size) return false;
    used += *size;
  }
  return std::string_view(got, used) == wanted;
}

}  // namespace

TEST_GROUP_BASE(DescriptorStream, coir::test::BothSides) {};

TEST(DescriptorStream, a_pipe_is_written_read_and_ends) {
  both_sides([&] {
    const int before = count_fds();
    Ends ends;
    auto reader = DescriptorStream::adopt(ends.reader);
    auto writer = DescriptorStream::adopt(ends.writer);
    expect(reader && writer && !blocks(ends.reader));
    expect(writer->write("hello", patience()).has_value());
    expect(reads(*reader, "hello"));
    char got[8];
    expect(is(reader->read({}, patience()), ErrorCode::invalid));
    expect(is(reader->read(got, Deadline::after(2ms)), ErrorCode::timed_out));
    expect(writer->write("end", patience()).has_value());
    writer->close();
    expect(reads(*reader, "end"));
    expect(is(reader->read(got, patience()), ErrorCode::end_of_stream));
    expect(is(writer->write("x"), ErrorCode::closed));
    reader->close();
    expect(is(reader->read(got), ErrorCode::closed) && is(reader->wait(Direction::readable), ErrorCode::closed));
    expect(fds_are_back_to(before));
  });
}

TEST(DescriptorStream, a_full_pipe_makes_its_writer_wait_and_a_scope_ends_that) {
  both_sides([&] {
    Ends ends;
    auto reader = DescriptorStream::adopt(ends.reader);
    auto writer = DescriptorStream::adopt(ends.writer);
    static char many[1 << 20];
    expect(writer->wait(Direction::writable, patience()).has_value());
    expect(is(writer->write({many, sizeof many}, Deadline::after(2ms)), ErrorCode::timed_out));
    expect(is(writer->wait(Direction::writable, Deadline::after(2ms)), ErrorCode::timed_out));
    coir::CancelScope scope(Deadline::after(2ms));
    const auto ended = writer->write_some("x");
    expect(is(ended, ErrorCode::timed_out) && scope.caused(ended.error()));
  });
}

TEST(DescriptorStream, a_terminal_goes_both_ways_and_hangs_up) {
  both_sides([&] {
    Terminal terminal;
    if (terminal.inside < 0) return;  // no /dev/pts
    auto outside = DescriptorStream::adopt(terminal.outside);
    auto inside = DescriptorStream::adopt(terminal.inside);
    expect(outside && inside);
    expect(inside->write("prompt> ", patience()).has_value() && reads(*outside, "prompt> "));
    expect(outside->write("answer\n", patience()).has_value() && reads(*inside, "answer\n"));
    expect(is(inside->wait(Direction::readable, Deadline::after(2ms)), ErrorCode::timed_out));
    const auto either = inside->wait_either(patience());
    expect(either && *either == Direction::writable);
    expect(outside->write("x", patience()).has_value());
    expect(inside->wait(Direction::readable, patience()).has_value());
    // Asked again without having read: what an earlier wait took is not waited for.
    expect(inside->wait(Direction::readable, patience()).has_value());
    const auto now = inside->wait_either(patience());
    expect(now && *now == Direction::readable);
    inside->close();
    char got[8];
    expect(is(outside->read(got, patience()), ErrorCode::end_of_stream));
  });
}

TEST(DescriptorStream, a_full_terminal_is_waited_for_in_either_direction) {
  both_sides([&] {
    Terminal terminal;
    if (terminal.inside < 0) return;
    auto outside = DescriptorStream::adopt(terminal.outside);
    auto inside = DescriptorStream::adopt(terminal.inside);
    static char many[1 << 20];
    // The kernel moves what is written on by and by, until the other side's buffer is full as well.
    coir::test::until([&] {
      expect(is(inside->write({many, sizeof many}, Deadline::after(5ms)), ErrorCode::timed_out));
      return is(inside->wait_either(Deadline::after(2ms)), ErrorCode::timed_out);
    });
    expect(outside->write("x", patience()).has_value());
    const auto either = inside->wait_either(patience());
    expect(either && *either == Direction::readable);
  });
}

TEST(DescriptorStream, a_regular_file_is_read_and_written_to_its_end) {
  both_sides([&] {
    Folder folder;
    put(folder.at("a"), "0123456789");
    auto stream = DescriptorStream::open(folder.at("a"), {.read = true, .write = true});
    expect(stream.has_value());
    char got[4];
    expect(stream->wait(Direction::readable, patience()).has_value());
    expect(stream->read(got, patience()).value_or(0) == 4 && memcmp(got, "0123", 4) == 0);
    expect(stream->write("xy", patience()).has_value());
    expect(reads(*stream, "6789"));
    expect(is(stream->read(got, patience()), ErrorCode::end_of_stream));
    expect(holds(folder.at("a"), "0123xy6789"));
    expect(is(stream->read(got, Deadline::now()), ErrorCode::end_of_stream));
    expect(is(DescriptorStream::open(folder.at("."), {}), ErrorCode::unsupported));
    expect(DescriptorStream::open(folder.at("none")).error().sys == ENOENT);
  });
}

TEST(DescriptorStream, a_regular_file_gives_what_it_holds_without_waiting) {
  both_sides([&] {
    Folder folder;
    put(folder.at("a"), "one\ntwo\nthree");
    auto stream = DescriptorStream::open(folder.at("a"));
    expect(stream.has_value());
    char room[64];
    coir::StreamLines lines(*stream, room);
    for (const char* each : {"one", "two", "three"}) {
      const auto line = lines.next(Deadline::now());
      expect(line && *line == each);
    }
    expect(lines.next(Deadline::now()).error() == ErrorCode::end_of_stream);
  });
}

TEST(DescriptorStream, a_device_and_a_socket_are_streams) {
  both_sides([&] {
    auto null = DescriptorStream::open("/dev/null", {.read = true, .write = true});
    char got[4];
    expect(null && null->write("nothing").has_value() && is(null->read(got), ErrorCode::end_of_stream));
    auto zero = DescriptorStream::open("/dev/zero");
    expect(zero && zero->wait(Direction::readable).has_value() && zero->read(got).value_or(0) == sizeof got);
    int ends[2];
    expect(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    auto here = DescriptorStream::adopt(ends[0]);
    auto there = DescriptorStream::adopt(ends[1]);
    expect(here->write("x", patience()).has_value() && reads(*there, "x"));
    expect(is(there->read(got, Deadline::after(2ms)), ErrorCode::timed_out));
    there->close();
    expect(is(here->write("x"), ErrorCode::closed));  // and no SIGPIPE
  });
}

TEST(DescriptorStream, a_shared_descriptor_keeps_its_flags_and_stays_open) {
  both_sides([&] {
    Folder folder;
    put(folder.at("a"), "0123456789");
    // A run keeps the wakeup of its first call that blocks.
    expect(coir::File::open(folder.at("a")).has_value());
    const int before = count_fds();
    Ends ends;
    const int file = open(folder.at("a"), O_RDONLY | O_CLOEXEC);
    {
      auto reader = DescriptorStream::share(ends.reader);
      auto writer = DescriptorStream::share(ends.writer);
      expect(reader && writer && blocks(ends.reader) && blocks(ends.writer));
      expect(write(ends.writer, "pipe", 4) == 4 && reads(*reader, "pipe"));
      char got[4];
      expect(is(reader->read(got, Deadline::after(2ms)), ErrorCode::timed_out));
      // A file goes on where its owner has read to.
      expect(lseek(file, 6, SEEK_SET) == 6);
      auto rest = DescriptorStream::share(file);
      expect(rest && reads(*rest, "6789"));
    }
    expect(write(ends.writer, "x", 1) == 1);
    close(ends.reader);
    close(ends.writer);
    close(file);
    expect(fds_are_back_to(before));
    expect(DescriptorStream::share(-1).error().sys == EBADF);
  });
}

#if !COIR_NO_ASYNC

TEST(DescriptorStream, a_reader_and_a_writer_on_fibers_pass_much_through_a_pipe) {
  both_sides([&] {
    if (coir::current().id() == 0) return;
    Ends ends;
    auto reader = DescriptorStream::adopt(ends.reader);
    auto writer = DescriptorStream::adopt(ends.writer);
    constexpr std::size_t kBytes = 1 << 20;
    coir::Fiber writing = coir::spawn([&] {
      static char many[8192];
      for (std::size_t sent = 0; sent < kBytes; sent += sizeof many) {
        expect(writer->write({many, sizeof many}, patience()).has_value());
      }
      writer->close();
    });
    std::size_t all = 0;
    static char got[3000];
    for (;;) {
      const auto size = reader->read(got, patience());
      if (!size) {
        expect(size.error() == ErrorCode::end_of_stream);
        break;
      }
      all += *size;
    }
    expect(all == kBytes && writing.join().has_value());
  });
}

TEST(DescriptorStream, bytes_a_cancellation_and_a_close_end_a_wait) {
  both_sides([&] {
    if (coir::current().id() == 0) return;
    Ends ends;
    auto reader = DescriptorStream::adopt(ends.reader);
    auto writer = DescriptorStream::adopt(ends.writer);
    char got[4];
    coir::Fiber cancelled = coir::spawn([&] { expect(is(reader->read(got), ErrorCode::cancelled)); });
    coir::test::until_parked(cancelled);
    expect(cancelled.cancel().has_value() && cancelled.join().has_value());
    coir::Fiber woken = coir::spawn([&] {
      const auto either = reader->wait_either(patience());
      expect(either && *either == Direction::readable && reads(*reader, "x"));
    });
    coir::test::until_parked(woken);
    expect(writer->write("x").has_value() && woken.join().has_value());
    coir::Fiber closed = coir::spawn([&] { expect(is(reader->wait_either(), ErrorCode::closed)); });
    coir::test::until_parked(closed);
    reader->close();
    expect(closed.join().has_value());
  });
}

TEST(DescriptorStream, closed_at_any_moment_no_reader_meets_the_next_owner_of_its_number) {
  both_sides([&] {
    if (coir::current().id() == 0) return;
    for (int turn = 0;
         turn < coir::test::scaled({.plain = 1000, .address_sanitized = 300, .thread_sanitized = 200, .emulated = 50});
         ++turn) {
      Ends ends;
      auto reader = DescriptorStream::adopt(ends.reader);
      auto writer = DescriptorStream::adopt(ends.writer);
      coir::Fiber reading = coir::spawn([&] {
        char got[4];
        expect(is(reader->read(got, patience()), ErrorCode::closed));
      });
      if (turn % 2 != 0) coir::yield();
      reader->close();
      Ends next;  // nothing is ever written to it
      expect(reading.join().has_value());
      ::close(next.reader);
      ::close(next.writer);
    }
  });
}

#endif

}  // namespace descriptor_stream_test
