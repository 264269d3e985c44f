#include "names/record_writer.h"

#include <CppUTest/TestHarness.h>
#include <string.h>

namespace record_writer_test {

using namespace coir::names;

namespace {

Name name_of(std::string_view text) {
  Name name;
  CHECK_TRUE(name.set(text));
  return name;
}

}  // namespace

TEST_GROUP(RecordWriter) {};

TEST(RecordWriter, names_are_compressed_and_read_back) {
  unsigned char room[512];
  RecordWriter out(room, {.id = 7, .flags = MessageHeader::kResponse});
  CHECK_TRUE(out.ask(name_of("board.local"), kTypeA, kClassIn));
  out.begin(RecordWriter::answer, name_of("_http._tcp.local"), kTypePtr, kClassIn, 4500);
  out.name(name_of("board._http._tcp.local"));
  CHECK_TRUE(out.end());
  const std::size_t before = out.message().size();
  out.begin(RecordWriter::answer, name_of("board._http._tcp.local"), kTypeSrv, kClassIn, 120);
  out.u16(0);
  out.u16(0);
  out.u16(80);
  out.name(name_of("board.local"));
  CHECK_TRUE(out.end());
  CHECK_EQUAL(before + 2 + 10 + 6 + 2, out.message().size());

  MessageReader reader(out.message());
  MessageHeader header;
  Question question;
  Record record;
  CHECK_TRUE(reader.read(header));
  CHECK_EQUAL(1, header.questions);
  CHECK_EQUAL(2, header.answers);
  CHECK_TRUE(reader.read(question));
  CHECK_TRUE(reader.name_is(question.name_at, name_of("board.local")));
  CHECK_TRUE(reader.read(record));
  CHECK_TRUE(reader.name_is(record.name_at, name_of("_http._tcp.local")));
  CHECK_TRUE(reader.name_is(record.data_at, name_of("board._http._tcp.local")));
  CHECK_TRUE(reader.read(record));
  CHECK_TRUE(reader.name_is(record.name_at, name_of("board._http._tcp.local")));
  CHECK_TRUE(reader.name_is(record.data_at + 6, name_of("board.local")));
  CHECK_EQUAL(120u, record.ttl);
}

TEST(RecordWriter, a_name_may_stand_uncompressed) {
  unsigned char room[512];
  RecordWriter out(room, {});
  CHECK_TRUE(out.ask(name_of("board.local"), kTypeA, kClassIn));
  out.begin(RecordWriter::answer, name_of("board.local"), kTypeSrv, kClassIn, 120);
  out.name(name_of("board.local"), false);
  CHECK_TRUE(out.end());
  CHECK_EQUAL(MessageHeader::kBytes + 13 + 4 + 2 + 10 + 13, out.message().size());
}

TEST(RecordWriter, a_record_that_does_not_fit_is_taken_back_whole) {
  unsigned char whole[256];
  const auto write = [](RecordWriter& out) {
    out.begin(RecordWriter::answer, name_of("a.board.local"), kTypePtr, kClassIn, 1);
    out.name(name_of("b.board.local"));
    return out.end();
  };
  RecordWriter big(whole, {});
  CHECK_TRUE(big.ask(name_of("local"), kTypeA, kClassIn));
  const std::size_t asked = big.message().size();
  CHECK_TRUE(write(big));
  const std::size_t all = big.message().size();
  for (std::size_t size = asked; size < all; ++size) {
    unsigned char room[256];
    memset(room, 0x55, sizeof room);
    RecordWriter out(std::span(room, size), {});
    CHECK_TRUE(out.ask(name_of("local"), kTypeA, kClassIn));
    CHECK_FALSE(write(out));
    CHECK_EQUAL(asked, out.message().size());
    CHECK_EQUAL(0, out.count(RecordWriter::answer));
    for (std::size_t i = size; i < sizeof room; ++i) CHECK_EQUAL(0x55, room[i]);
    // And no name refers to what is gone.
    if (out.ask(name_of("board.local"), kTypeA, kClassIn)) {
      MessageReader reader(out.message());
      MessageHeader header;
      Question question;
      CHECK_TRUE(reader.read(header) && reader.read(question) && reader.read(question));
      CHECK_TRUE(reader.name_is(question.name_at, name_of("board.local")));
    }
  }
}

// An owner that does not fit has noted where it would stand. An earlier message may have left pointers there that lead to
// themselves.
TEST(RecordWriter, a_name_behind_an_owner_that_did_not_fit_is_compared_with_nothing) {
  unsigned char room[0x4c4 + 200];
  for (std::size_t left = 0; left < 36; ++left) {
    memset(room, 0xc4, sizeof room);
    RecordWriter out(room, {});
    const std::size_t taken = out.message().size() + name_of("a").wire().size() + 10;
    unsigned char data[sizeof room];
    memset(data, 0xc4, sizeof data);
    out.begin(RecordWriter::answer, name_of("a"), kTypeTxt, kClassIn, 1);
    out.bytes(std::span(data).first(sizeof room - taken - left));
    CHECK_TRUE(out.end());
    out.begin(RecordWriter::answer, name_of("_http._tcp.local"), kTypePtr, kClassIn, 1);
    out.name(name_of("board._http._tcp.local"));
    CHECK_FALSE(out.end());
    CHECK_EQUAL(1, out.count(RecordWriter::answer));
  }
}

}  // namespace record_writer_test
