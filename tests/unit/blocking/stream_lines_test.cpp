// StreamLines reads a stream of any kind line by line, on a fiber and on a plain thread.

#include <coir/config.h>
#include <coir/descriptor_stream.h>
#include <coir/stream_lines.h>

#include <CppUTest/TestHarness.h>
#include <unistd.h>

#include <string_view>

#include "tests/support/both_sides.h"
#include "tests/support/pipe.h"

namespace stream_lines_test {

using coir::Deadline;
using coir::DescriptorStream;
using coir::ErrorCode;
using coir::StreamLines;
using coir::test::Pipe;

namespace {

// Wire is a pair of connected sockets: what is said at one end is read at the other as a stream.
struct Wire {
  Pipe pipe{Pipe::Kind::sockets};
  DescriptorStream stream = *DescriptorStream::adopt(std::exchange(pipe.reader, -1));

  void say(std::string_view text) { static_cast<void>(write(pipe.writer, text.data(), text.size())); }
  void hang_up() { pipe.close_writer(); }
};

}  // namespace

TEST_GROUP_BASE(StreamLines, coir::test::BothSides) {
  // told tells whether the next line is this error, without waiting.
  template <class Lines>
  static bool told(Lines& lines, ErrorCode code) {
    const auto line = lines.next(Deadline::now());
    return !line && line.error() == code;
  }
};

TEST(StreamLines, come_one_by_one_however_they_were_cut_and_lose_their_ends) {
  both_sides([&] {
    Wire wire;
    char buffer[64];
    StreamLines lines(wire.stream, buffer);
    wire.say("one\r\n\ntw");
    expect(lines.next().value_or("?") == "one");
    expect(lines.next().value_or("?") == "");
    wire.say("o\nthree\r\nfour\rfive\n");
    for (const char* const wanted : {"two", "three", "four\rfive"}) expect(lines.next().value_or("?") == wanted);
  });
}

TEST(StreamLines, the_last_one_may_lack_its_end) {
  both_sides([&] {
    Wire wire;
    char buffer[64];
    StreamLines lines(wire.stream, buffer);
    wire.say("one\ntwo");
    wire.hang_up();
    expect(lines.next().value_or("?") == "one");
    expect(lines.next().value_or("?") == "two");
    expect(told(lines, ErrorCode::end_of_stream) && told(lines, ErrorCode::end_of_stream));
  });
}

TEST(StreamLines, one_that_is_too_long_is_told_once_and_passed_over) {
  both_sides([&] {
    Wire wire;
    char buffer[8];
    StreamLines lines(wire.stream, buffer);
    wire.say("1234567\n12345678\nshort\n");
    expect(lines.next().value_or("?") == "1234567");
    expect(told(lines, ErrorCode::limit));
    expect(lines.next().value_or("?") == "short");
    wire.say("a line that is many times as long as the buffer");
    expect(told(lines, ErrorCode::limit) && told(lines, ErrorCode::timed_out));
    wire.say(" goes on\nafter\n");
    expect(lines.next().value_or("?") == "after");
  });
}

TEST(StreamLines, with_now_return_what_is_there_and_lose_nothing) {
  both_sides([&] {
    Wire wire;
    char buffer[64];
    StreamLines lines(wire.stream, buffer);
    expect(told(lines, ErrorCode::timed_out));
    wire.say("half");
    expect(told(lines, ErrorCode::timed_out));
    wire.say(" and half\nwhole\n");
    expect(lines.next(Deadline::now()).value_or("?") == "half and half");
    expect(lines.next(Deadline::now()).value_or("?") == "whole");
    expect(told(lines, ErrorCode::timed_out));
  });
}

TEST(StreamLines, want_a_buffer) {
  both_sides([&] {
    Wire wire;
    StreamLines lines(wire.stream, {});
    expect(told(lines, ErrorCode::invalid));
  });
}

}  // namespace stream_lines_test
