#include "names/dns_message.h"

#include <CppUTest/TestHarness.h>
#include <string.h>

namespace dns_message_test {

using namespace coir::names;

namespace {

Name name_of(std::string_view text) {
  Name name;
  CHECK_TRUE(name.set(text));
  return name;
}

// A header that announces one question, and what follows.
struct Message {
  unsigned char bytes[64] = {0, 7, 0x81, 0x80, 0, 1};
  std::size_t size = MessageHeader::kBytes;

  Message& add(std::initializer_list<unsigned char> more) {
    for (const unsigned char each : more) bytes[size++] = each;
    return *this;
  }
  std::span<const unsigned char> all() const { return {bytes, size}; }
};

}  // namespace

TEST_GROUP(DnsMessage) {};

TEST(DnsMessage, a_name_is_labels_with_their_lengths) {
  const Name name = name_of("Www.example");
  MEMCMP_EQUAL("\3Www\7example\0", name.wire().data(), 13);
  CHECK_EQUAL(13u, name.wire().size());
  CHECK_TRUE(name_of("Www.example.").is(name.wire()));
  CHECK_TRUE(name_of("wwW.EXAMPLE").is(name.wire()));
  CHECK_FALSE(name_of("www.exampl").is(name.wire()));
}

TEST(DnsMessage, a_text_that_is_no_name_is_refused) {
  Name name;
  char text[256];
  memset(text, 'a', sizeof text);
  CHECK_FALSE(name.set(""));
  CHECK_FALSE(name.set("."));
  CHECK_FALSE(name.set("a..b"));
  CHECK_FALSE(name.set(".a"));
  CHECK_FALSE(name.set(std::string_view(text, 64)));
  CHECK_TRUE(name.set(std::string_view(text, 63)));
  for (std::size_t i = 49; i < sizeof text; i += 50) text[i] = '.';
  CHECK_TRUE(name.set(std::string_view(text, 253)));
  CHECK_FALSE(name.set(std::string_view(text, 254)));
  CHECK_EQUAL(1u, name.wire().size());
}

TEST(DnsMessage, a_name_that_cannot_grow_stays_as_it_was) {
  Name name = name_of("host");
  CHECK_TRUE(name.append("example"));
  CHECK_TRUE(name.is(name_of("host.example").wire()));
  CHECK_FALSE(name.append("a..b"));
  CHECK_TRUE(name.is(name_of("host.example").wire()));
}

TEST(DnsMessage, a_question_that_is_written_is_read) {
  unsigned char out[64];
  MessageWriter writer(out);
  writer.write(MessageHeader{.id = 0x1234, .flags = MessageHeader::kRecursionDesired, .questions = 1});
  writer.write(name_of("board.example"), kTypeAaaa, kClassIn);
  MessageReader reader(writer.message());
  MessageHeader header;
  Question question;
  CHECK_TRUE(reader.read(header) && reader.read(question));
  CHECK_EQUAL(0x1234, header.id);
  CHECK_EQUAL(1, header.questions);
  CHECK_EQUAL(28, question.type);
  CHECK_TRUE(reader.name_is(question.name_at, name_of("BOARD.example")));
  CHECK_FALSE(reader.name_is(question.name_at, name_of("board.example.net")));
  CHECK_FALSE(reader.name_is(question.name_at, name_of("board")));
}

TEST(DnsMessage, a_question_that_does_not_fit_is_no_message) {
  unsigned char out[20];
  MessageWriter writer(out);
  writer.write(MessageHeader{.questions = 1});
  writer.write(name_of("board.example"), kTypeA, kClassIn);
  CHECK_TRUE(writer.message().empty());
}

TEST(DnsMessage, a_pointer_leads_backwards_to_the_rest_of_a_name) {
  Message message;
  message.add({1, 'a', 2, 'b', 'c', 0, 0, 1, 0, 1});                        // a.bc at 12
  message.add({1, 'd', 0xc0, 14, 0, 5, 0, 1, 0, 0, 0, 9, 0, 2, 0xc0, 12});  // d.bc, an alias of a.bc
  MessageReader reader(message.all());
  MessageHeader header;
  Question question;
  Record record;
  CHECK_TRUE(reader.read(header) && reader.read(question) && reader.read(record));
  CHECK_TRUE(reader.name_is(record.name_at, name_of("d.bc")));
  CHECK_EQUAL(9u, record.ttl);
  Name alias;
  CHECK_TRUE(reader.copy_name(record.data_at, alias) && alias.is(name_of("a.bc").wire()));
}

TEST(DnsMessage, names_that_never_end_are_refused) {
  for (const auto& broken : {Message().add({0xc0, 12, 0, 1, 0, 1}),          // a pointer to itself
                             Message().add({1, 'a', 0xc0, 12, 0, 1, 0, 1}),  // and one to its own beginning
                             Message().add({0xc0, 20, 0, 1, 0, 1}),          // forwards
                             Message().add({9, 'a', 0, 0, 1, 0, 1}),         // beyond the end
                             Message().add({0x80, 'a', 0, 0, 1, 0, 1}),      // a length that is none
                             Message().add({1, 'a', 0xc0})}) {               // half a pointer
    MessageReader reader(broken.all());
    MessageHeader header;
    Question question;
    CHECK_TRUE(reader.read(header));
    CHECK_FALSE(reader.read(question));
  }
}

TEST(DnsMessage, a_record_that_was_cut_off_is_none) {
  Message message;
  message.add({1, 'a', 0, 0, 1, 0, 1}).add({0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 192, 0, 2});
  MessageReader reader(message.all());
  MessageHeader header;
  Question question;
  Record record;
  CHECK_TRUE(reader.read(header) && reader.read(question));
  CHECK_FALSE(reader.read(record));
}

}  // namespace dns_message_test
