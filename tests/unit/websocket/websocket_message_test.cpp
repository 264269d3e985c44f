// Messages by RFC 6455, 5.4 to 7.4: what a peer may send becomes events, what it may not fails with the code it
// deserves, and each conversation gives the same however its bytes are cut.

#include <CppUTest/TestHarness.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string_view>

#include "net/src/websocket/message_decoder.h"
#include "tests/support/random.h"
#include "tests/support/scale.h"

namespace websocket_message_test {

namespace {

using namespace coir::http;
using namespace std::string_view_literals;
using Kind = MessageEvent::Kind;

// Wire is what a peer of a side sends: frames, masked as that side wants them.
class Wire {
 public:
  explicit Wire(WebSocketRole reader) : masked_(reader == WebSocketRole::server) {}

  Wire& frame(Opcode opcode, std::string_view payload, bool fin = true) {
    MaskKey key = 0x5af10c37u + static_cast<MaskKey>(size_);
    char header[kMostFrameHeader];
    const std::string_view written = write_frame_header(
        {.opcode = opcode, .fin = fin, .masked = masked_, .key = key, .payload_bytes = payload.size()}, header);
    raw(written);
    raw(payload);
    if (masked_) mask_payload({bytes_ + size_ - payload.size(), payload.size()}, key);
    return *this;
  }
  Wire& text(std::string_view payload, bool fin = true) { return frame(Opcode::text, payload, fin); }
  Wire& binary(std::string_view payload, bool fin = true) { return frame(Opcode::binary, payload, fin); }
  Wire& more(std::string_view payload, bool fin = true) { return frame(Opcode::continuation, payload, fin); }
  Wire& ping(std::string_view payload) { return frame(Opcode::ping, payload); }
  Wire& pong(std::string_view payload) { return frame(Opcode::pong, payload); }
  Wire& close(std::string_view payload) { return frame(Opcode::close, payload); }
  Wire& raw(std::string_view bytes) {
    CHECK_TRUE(size_ + bytes.size() <= sizeof bytes_);
    memcpy(bytes_ + size_, bytes.data(), bytes.size());
    size_ += bytes.size();
    return *this;
  }

  std::string_view bytes() const { return {bytes_, size_}; }

 private:
  bool masked_;
  std::size_t size_ = 0;
  char bytes_[4096];
};

// Heard is what a conversation told, as text: T(...) a text, B(...) a binary message, <i ...> a ping, <o ...> a pong,
// also inside a message's brackets, C1000(...) a close, F1002 a failure. A message that did not end has no closing
// bracket.
class Heard {
 public:
  void event(const MessageEvent& event) {
    switch (event.kind) {
      case Kind::none:
        return;
      case Kind::data:
        CHECK_EQUAL(event.begins, !in_message_);
        if (event.begins) put(event.text ? "T(" : "B(");
        if (!event.begins) CHECK_EQUAL(text_, event.text);
        text_ = event.text;
        data(event);
        in_message_ = !event.ends;
        return;
      case Kind::ping:
      case Kind::pong:
        put(event.kind == Kind::ping ? "<i " : "<o ");
        put(event.bytes);
        put(">");
        return;
      case Kind::close:
        put("C");
        code(event);
        put("(");
        put(event.bytes);
        put(")");
        return;
      case Kind::failed:
        put("F");
        code(event);
        return;
    }
  }
  std::string_view text() const { return {text_bytes_, size_}; }

 private:
  void data(const MessageEvent& event) {
    put(event.bytes);
    if (event.ends) put(")");
  }
  void code(const MessageEvent& event) {
    char digits[8];
    const int size = snprintf(digits, sizeof digits, "%u", static_cast<unsigned>(event.code));
    put({digits, static_cast<std::size_t>(size)});
  }
  void put(std::string_view bytes) {
    CHECK_TRUE(size_ + bytes.size() <= sizeof text_bytes_);
    if (!bytes.empty()) memcpy(text_bytes_ + size_, bytes.data(), bytes.size());
    size_ += bytes.size();
  }

  bool in_message_ = false;
  bool text_ = false;
  std::size_t size_ = 0;
  char text_bytes_[4096];
};

constexpr MessageLimits kLimits;

// feed gives a decoder one piece, in a block of its own, and tells what it heard.
void feed(MessageDecoder& decoder, std::string_view piece, MessageDecoder::ControlPayload& control,
          const MessageLimits& limits, Heard& heard) {
  char* const exact = static_cast<char*>(malloc(piece.size() + 1));
  memcpy(exact + 1, piece.data(), piece.size());
  std::span<char> bytes(exact + 1, piece.size());
  for (;;) {
    const MessageEvent event = decoder.next(bytes, control, limits);
    if (event.kind == Kind::none) break;
    heard.event(event);
  }
  LONGS_EQUAL(0, bytes.size());
  free(exact);
  // `control` holds bytes for the next piece only while the decoder says so.
  if (!decoder.holds_control()) control.fill('?');
}

Heard hear_in_steps(std::string_view wire, WebSocketRole role, std::size_t step, const MessageLimits& limits) {
  MessageDecoder decoder(role);
  MessageDecoder::ControlPayload control;
  Heard heard;
  for (std::size_t at = 0; at < wire.size(); at += step) {
    feed(decoder, {wire.data() + at, step < wire.size() - at ? step : wire.size() - at}, control, limits, heard);
  }
  return heard;
}

Heard hear_cut_at(std::string_view wire, WebSocketRole role, std::size_t cut, const MessageLimits& limits) {
  MessageDecoder decoder(role);
  MessageDecoder::ControlPayload control;
  Heard heard;
  feed(decoder, {wire.data(), cut}, control, limits, heard);
  feed(decoder, {wire.data() + cut, wire.size() - cut}, control, limits, heard);
  return heard;
}

// hears tells whether a conversation gives `wanted`: whole, byte by byte, and cut in two at each byte.
void hears_as(WebSocketRole role, std::string_view wire, std::string_view wanted, const MessageLimits& limits) {
  STRNCMP_EQUAL(wanted.data(), hear_in_steps(wire, role, wire.size() + 1, limits).text().data(), wanted.size());
  CHECK_TRUE(hear_in_steps(wire, role, wire.size() + 1, limits).text() == wanted);
  for (const std::size_t step : {1, 2, 3, 7}) CHECK_TRUE(hear_in_steps(wire, role, step, limits).text() == wanted);
  for (std::size_t cut = 1; cut < wire.size(); ++cut) {
    if (hear_cut_at(wire, role, cut, limits).text() != wanted) LONGS_EQUAL(-1, cut);
  }
}

// hears does so for both roles; `say` writes what the peer sends.
template <class Say>
void hears(Say say, std::string_view wanted, const MessageLimits& limits = kLimits) {
  for (const WebSocketRole role : {WebSocketRole::server, WebSocketRole::client}) {
    Wire wire(role);
    say(wire);
    hears_as(role, wire.bytes(), wanted, limits);
  }
}

// Repeated is a payload that a test need not write out.
template <std::size_t kSize>
struct Repeated {
  explicit Repeated(char c) { memset(bytes, c, kSize); }
  operator std::string_view() const { return {bytes, kSize}; }
  char bytes[kSize];
};

}  // namespace

TEST_GROUP(WebSocketMessage) {};

TEST(WebSocketMessage, the_examples_of_the_rfc_are_heard) {
  hears_as(WebSocketRole::client, "\x81\x05Hello", "T(Hello)", kLimits);
  hears_as(WebSocketRole::server, "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", "T(Hello)", kLimits);
  hears_as(WebSocketRole::client, "\x01\x03Hel\x80\x02lo", "T(Hello)", kLimits);
  hears_as(WebSocketRole::client, "\x89\x05Hello", "<i Hello>", kLimits);
  hears_as(WebSocketRole::server, "\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", "<o Hello>", kLimits);
}

TEST(WebSocketMessage, messages_of_each_length_form_are_heard) {
  hears([](Wire& w) { w.text("").binary(""); }, "T()B()");
  hears([](Wire& w) { w.text("a").binary("\0\xff"sv); }, "T(a)B(\0\xff)"sv);
  const Repeated<125> most_short('x');
  const Repeated<126> least_medium('y');
  const Repeated<1000> medium('z');
  for (const std::string_view payload :
       {std::string_view(most_short), std::string_view(least_medium), std::string_view(medium)}) {
    char wanted[1100] = "B(";
    memcpy(wanted + 2, payload.data(), payload.size());
    wanted[2 + payload.size()] = ')';
    hears([&](Wire& w) { w.binary(payload); }, {wanted, payload.size() + 3});
  }
}

TEST(WebSocketMessage, fragments_make_one_message) {
  hears([](Wire& w) { w.text("one ", false).more("two ", false).more("three"); }, "T(one two three)");
  hears([](Wire& w) { w.binary("a", false).more("b").text("c"); }, "B(ab)T(c)");
}

TEST(WebSocketMessage, empty_fragments_are_fragments) {
  hears([](Wire& w) { w.text("", false).more("", false).more(""); }, "T()");
  hears([](Wire& w) { w.text("", false).more("a", false).more("", false).more(""); }, "T(a)");
  hears([](Wire& w) { w.binary("a", false).more("", false).more("b"); }, "B(ab)");
}

TEST(WebSocketMessage, control_frames_come_between_fragments_and_end_nothing) {
  hears([](Wire& w) { w.text("one", false).ping("p").more("two", false).pong("").more("three").ping(""); },
        "T(one<i p>two<o >three)<i >");
  hears([](Wire& w) { w.text("", false).ping("p").more("two"); }, "<i p>T(two)");
}

TEST(WebSocketMessage, a_close_between_fragments_ends_the_conversation) {
  hears([](Wire& w) { w.text("one", false).close("\x03\xe8").more("two"); }, "T(oneC1000()");
}

TEST(WebSocketMessage, control_frames_hold_125_bytes) {
  const Repeated<125> most('p');
  char wanted[140] = "<i ";
  memcpy(wanted + 3, most.bytes, 125);
  wanted[128] = '>';
  hears([&](Wire& w) { w.ping(most); }, {wanted, 129});
  wanted[1] = 'o';
  hears([&](Wire& w) { w.pong(most); }, {wanted, 129});
}

TEST(WebSocketMessage, control_frames_of_126_bytes_fail) {
  const Repeated<126> over('p');
  hears([&](Wire& w) { w.ping(over); }, "F1002");
  hears([&](Wire& w) { w.pong(over); }, "F1002");
  hears([&](Wire& w) { w.close(over); }, "F1002");
}

TEST(WebSocketMessage, a_control_frame_in_fragments_fails) {
  hears([](Wire& w) { w.frame(Opcode::ping, "p", false).more("q"); }, "F1002");
  hears([](Wire& w) { w.frame(Opcode::close, "", false); }, "F1002");
}

TEST(WebSocketMessage, a_continuation_of_nothing_fails) {
  hears([](Wire& w) { w.more("lost"); }, "F1002");
  hears([](Wire& w) { w.more("lost", false); }, "F1002");
  hears([](Wire& w) { w.text("a").more("lost"); }, "T(a)F1002");
  hears([](Wire& w) { w.text("a", false).more("b").more("lost"); }, "T(ab)F1002");
}

TEST(WebSocketMessage, a_message_within_a_message_fails) {
  hears([](Wire& w) { w.text("a", false).text("b"); }, "T(aF1002");
  hears([](Wire& w) { w.binary("a", false).binary("b", false); }, "B(aF1002");
  hears([](Wire& w) { w.text("", false).binary("b"); }, "F1002");
}

TEST(WebSocketMessage, reserved_bits_and_opcodes_fail_in_the_middle_of_a_message_too) {
  for (const unsigned first : {0xc1u, 0xa1u, 0x91u, 0x83u, 0x87u, 0x8bu, 0x8fu}) {
    const char bytes[] = {static_cast<char>(first)};
    hears([&](Wire& w) { w.raw({bytes, 1}); }, "F1002");
    hears([&](Wire& w) { w.text("a", false).raw({bytes, 1}); }, "T(aF1002");
  }
}

TEST(WebSocketMessage, a_frame_masked_for_the_other_role_fails) {
  hears_as(WebSocketRole::server, "\x81\x05Hello", "F1002", kLimits);
  hears_as(WebSocketRole::server, "\x81\x00"sv, "F1002", kLimits);
  hears_as(WebSocketRole::server, "\x89\x00"sv, "F1002", kLimits);
  hears_as(WebSocketRole::client, "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", "F1002", kLimits);
}

TEST(WebSocketMessage, a_mask_of_zeros_is_a_mask) {
  hears_as(WebSocketRole::server, "\x81\x85\0\0\0\0Hello"sv, "T(Hello)", kLimits);
}

TEST(WebSocketMessage, a_length_in_a_longer_form_fails) {
  hears_as(WebSocketRole::client, "\x81\x7e\x00\x05Hello"sv, "F1002", kLimits);
  hears_as(WebSocketRole::client, "\x81\x7f\0\0\0\0\0\0\0\x05Hello"sv, "F1002", kLimits);
  hears_as(WebSocketRole::client, "\x81\x7f\x80\0\0\0\0\0\0\x05Hello"sv, "F1002", kLimits);
}

TEST(WebSocketMessage, every_close_code_is_judged_by_the_registry) {
  for (unsigned number = 0; number <= 0xffff; ++number) {
    const bool good = may_be_sent(static_cast<CloseCode>(number));
    char frame[] = {'\x88', 2, static_cast<char>(number >> 8), static_cast<char>(number & 0xff)};
    std::span<char> bytes(frame);
    MessageDecoder decoder(WebSocketRole::client);
    MessageDecoder::ControlPayload control;
    const MessageEvent event = decoder.next(bytes, control, kLimits);
    const bool right = good ? event.kind == Kind::close && static_cast<unsigned>(event.code) == number
                            : event.kind == Kind::failed && event.code == CloseCode::protocol_error;
    if (!right || !decoder.ended()) LONGS_EQUAL(-1, number);
  }
}

TEST(WebSocketMessage, a_close_carries_nothing_or_a_code_and_a_reason) {
  hears([](Wire& w) { w.close(""); }, "C1005()");
  hears([](Wire& w) { w.close("\x03"); }, "F1002");
  hears([](Wire& w) { w.close("\x03\xe9"); }, "C1001()");
  hears(
      [](Wire& w) {
        w.close(
            "\x0f\xa0"
            "bye \xe2\x82\xac");
      },
      "C4000(bye \xe2\x82\xac)");
  hears(
      [](Wire& w) {
        w.close(
            "\x03\xe8"
            "bye \xe2\x82");
      },
      "F1007");
  hears(
      [](Wire& w) {
        w.close(
            "\x03\xe8"
            "b\xffye");
      },
      "F1007");
  hears(
      [](Wire& w) {
        w.close(
            "\x03\xed"
            "b\xffye");
      },
      "F1002");
}

TEST(WebSocketMessage, bytes_after_a_close_or_a_failure_are_dropped) {
  hears([](Wire& w) { w.close("\x03\xe8").text("late").ping("late").close(""); }, "C1000()");
  hears([](Wire& w) { w.more("wrong").text("late").close(""); }, "F1002");
}

TEST(WebSocketMessage, text_is_utf8_split_at_each_byte) {
  const std::string_view text =
      "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5 \xe2\x82\xac \xf0\x9f\xa5\xa5 \xf4\x8f\xbf\xbf";
  char wanted[64] = "T(";
  memcpy(wanted + 2, text.data(), text.size());
  wanted[2 + text.size()] = ')';
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    hears([&](Wire& w) { w.text({text.data(), cut}, false).more({text.data() + cut, text.size() - cut}); },
          {wanted, text.size() + 3});
  }
}

TEST(WebSocketMessage, malformed_text_fails_at_its_byte) {
  hears(
      [](Wire& w) {
        w.text(
            "ab\xff"
            "cd");
      },
      "T(abF1007");
  hears(
      [](Wire& w) {
        w.text(
            "\xff"
            "cd");
      },
      "F1007");
  hears(
      [](Wire& w) {
        w.text(
             "ab\xff"
             "cd",
             false)
            .more("never");
      },
      "T(abF1007");
  hears([](Wire& w) { w.text("ab", false).more("\xc0\x80"); }, "T(abF1007");
  hears([](Wire& w) { w.text("ab\xed", false).more("\xa0\x80"); },
        "T(ab\xed"
        "F1007");
  hears([](Wire& w) { w.text("ab\xf4", false).more("\x90\x80\x80"); },
        "T(ab\xf4"
        "F1007");
}

TEST(WebSocketMessage, text_that_ends_inside_a_character_fails) {
  hears([](Wire& w) { w.text("ab\xe2\x82"); },
        "T(ab\xe2\x82"
        "F1007");
  hears([](Wire& w) { w.text("ab\xe2\x82", false).more(""); },
        "T(ab\xe2\x82"
        "F1007");
  hears([](Wire& w) { w.text("\xe2\x82", false).ping("").more("\xac").text("\xc3"); },
        "T(\xe2\x82<i >\xac)T(\xc3"
        "F1007");
}

TEST(WebSocketMessage, binary_messages_hold_any_bytes) {
  hears([](Wire& w) { w.binary("\xff\xc0", false).more("\xe2\x82"); }, "B(\xff\xc0\xe2\x82)");
}

TEST(WebSocketMessage, each_message_is_checked_from_its_own_start) {
  hears([](Wire& w) { w.binary("\xe2").text("\x82"); }, "B(\xe2)F1007");
  hears([](Wire& w) { w.text("\xe2\x82\xac").text("\xac"); }, "T(\xe2\x82\xac)F1007");
}

TEST(WebSocketMessage, a_message_over_the_ceiling_fails_before_its_bytes_arrive) {
  constexpr MessageLimits limits = {.max_message = 10};
  hears([](Wire& w) { w.binary("0123456789"); }, "B(0123456789)", limits);
  hears([](Wire& w) { w.binary("0123456789a"); }, "F1009", limits);
  hears([](Wire& w) { w.binary("01234", false).more("56789"); }, "B(0123456789)", limits);
  hears([](Wire& w) { w.binary("01234", false).more("56789a"); }, "B(01234F1009", limits);
  hears([](Wire& w) { w.binary("0123456789", false).more("", false).more("a"); }, "B(0123456789F1009", limits);
  hears([](Wire& w) { w.binary("0123456789").binary("0123456789"); }, "B(0123456789)B(0123456789)", limits);
  hears_as(WebSocketRole::client, "\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff"sv, "F1009", limits);
}

TEST(WebSocketMessage, announced_lengths_do_not_overflow_the_ceiling) {
  constexpr MessageLimits limits = {.max_message = UINT64_MAX, .max_frame = UINT64_MAX};
  hears_as(WebSocketRole::client,
           "\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff"
           "abc"sv,
           "B(abc", limits);
  hears_as(WebSocketRole::client,
           "\x02\x01x\x80\x7f\x7f\xff\xff\xff\xff\xff\xff\xff"
           "abc"sv,
           "B(xF1009", {.max_message = INT64_MAX, .max_frame = UINT64_MAX});
}

TEST(WebSocketMessage, a_frame_over_the_ceiling_fails) {
  constexpr MessageLimits limits = {.max_frame = 5};
  hears([](Wire& w) { w.text("01234", false).more("56789"); }, "T(0123456789)", limits);
  hears([](Wire& w) { w.text("012345"); }, "F1009", limits);
  hears([](Wire& w) { w.text("01234", false).more("567890"); }, "T(01234F1009", limits);
  // A control frame is none of a message's.
  hears([](Wire& w) { w.ping("0123456789"); }, "<i 0123456789>", limits);
}

TEST(WebSocketMessage, fragments_over_the_ceiling_fail) {
  constexpr MessageLimits limits = {.max_fragments = 3};
  hears([](Wire& w) { w.text("a", false).more("b", false).more("c"); }, "T(abc)", limits);
  hears([](Wire& w) { w.text("a", false).more("b", false).more("c", false).more("d"); }, "T(abcF1008", limits);
  hears([](Wire& w) { w.text("a", false).ping("").more("b", false).pong("").more("c").text("d"); },
        "T(a<i >b<o >c)T(d)", limits);
  hears([](Wire& w) { w.text("", false).more("", false).more("", false).more("", false); }, "F1008", limits);
}

TEST(WebSocketMessage, sixty_five_thousand_fragments_are_a_message) {
  constexpr std::uint32_t kFragments = 65'536;
  for (const bool allowed : {true, false}) {
    const MessageLimits limits = {.max_fragments = allowed ? kFragments : kFragments - 1};
    MessageDecoder decoder(WebSocketRole::client);
    MessageDecoder::ControlPayload control;
    std::uint64_t heard = 0;
    MessageEvent event;
    for (std::uint32_t i = 0; i < kFragments; ++i) {
      char frame[] = {static_cast<char>((i == 0 ? 2 : 0) | (i + 1 == kFragments ? 0x80 : 0)), 1, 'x'};
      std::span<char> bytes(frame);
      event = decoder.next(bytes, control, limits);
      heard += event.bytes.size();
      if (event.kind != Kind::data) break;
    }
    LONGS_EQUAL(allowed ? kFragments : kFragments - 1, heard);
    CHECK_EQUAL(allowed, event.ends);
    CHECK_TRUE(allowed || event.code == CloseCode::policy_violation);
  }
}

TEST(WebSocketMessage, sixteen_mebibytes_pass_through_a_small_buffer) {
  constexpr std::size_t kMessage = std::size_t{16} << 20;
  constexpr std::size_t kBuffer = 4099;
  const std::size_t message = coir::test::kEmulated ? kMessage / 16 : kMessage;
  for (const bool text : {false, true}) {
    const MessageLimits limits = {.max_message = kMessage, .max_frame = kMessage};
    MessageDecoder decoder(WebSocketRole::server);
    MessageDecoder::ControlPayload control;
    char header[kMostFrameHeader];
    MaskKey key = 0xdeadbeef;
    const std::string_view written = write_frame_header(
        {.opcode = text ? Opcode::text : Opcode::binary, .masked = true, .key = key, .payload_bytes = message}, header);
    std::span<char> bytes(header, written.size());
    CHECK_TRUE(decoder.next(bytes, control, limits).kind == Kind::none);
    std::uint64_t heard = 0;
    unsigned wrong = 0;
    bool ended = false;
    static char buffer[kBuffer];
    for (std::size_t sent = 0; sent < message;) {
      const std::size_t here = message - sent < kBuffer ? message - sent : kBuffer;
      memset(buffer, 'a' + static_cast<int>(sent % 26), here);
      key = mask_payload({buffer, here}, key);
      bytes = {buffer, here};
      const MessageEvent event = decoder.next(bytes, control, limits);
      CHECK_TRUE(event.kind == Kind::data && event.text == text && event.begins == (sent == 0));
      for (const char c : event.bytes) wrong += c != 'a' + static_cast<int>(sent % 26);
      heard += event.bytes.size();
      sent += here;
      ended = event.ends;
    }
    LONGS_EQUAL(message, heard);
    LONGS_EQUAL(0, wrong);
    CHECK_TRUE(ended);
    CHECK_TRUE(decoder.between_messages());
  }
}

TEST(WebSocketMessage, a_piece_that_arrives_whole_is_not_copied) {
  char frame[] =
      "\x89\x03"
      "abc";
  std::span<char> bytes(frame, 5);
  MessageDecoder decoder(WebSocketRole::client);
  MessageDecoder::ControlPayload control;
  POINTERS_EQUAL(frame + 2, decoder.next(bytes, control, kLimits).bytes.data());
  char data[] =
      "\x82\x03"
      "abc";
  bytes = {data, 5};
  POINTERS_EQUAL(data + 2, decoder.next(bytes, control, kLimits).bytes.data());
}

TEST(WebSocketMessage, a_decoder_tells_what_is_unfinished) {
  MessageDecoder decoder(WebSocketRole::client);
  MessageDecoder::ControlPayload control;
  const auto feed_byte = [&](char byte) {
    std::span<char> bytes(&byte, 1);
    return decoder.next(bytes, control, kLimits).kind;
  };
  CHECK_TRUE(decoder.between_frames() && decoder.between_messages());
  CHECK_TRUE(feed_byte('\x01') == Kind::none);
  CHECK_FALSE(decoder.between_frames() || decoder.between_messages());
  feed_byte(1);
  feed_byte('a');
  CHECK_TRUE(decoder.between_frames());
  CHECK_FALSE(decoder.between_messages());
  feed_byte('\x89');
  feed_byte(2);
  CHECK_FALSE(decoder.between_frames() || decoder.holds_control());
  feed_byte('p');
  CHECK_TRUE(decoder.holds_control());
  CHECK_TRUE(feed_byte('q') == Kind::ping);
  CHECK_FALSE(decoder.holds_control() || decoder.between_messages() || !decoder.between_frames());
  feed_byte('\x80');
  CHECK_TRUE(feed_byte(0) == Kind::data);
  CHECK_TRUE(decoder.between_messages());
  CHECK_FALSE(decoder.ended());
  feed_byte('\x88');
  CHECK_TRUE(feed_byte(0) == Kind::close);
  CHECK_TRUE(decoder.ended());
}

TEST(WebSocketMessage, a_random_conversation_is_heard_alike_in_random_pieces) {
  coir::test::Random random{0x57c0de57};
  const int conversations =
      coir::test::scaled({.plain = 3000, .address_sanitized = 1000, .thread_sanitized = 300, .emulated = 300});
  for (int i = 0; i < conversations; ++i) {
    const WebSocketRole role = random.below(2) == 0 ? WebSocketRole::server : WebSocketRole::client;
    Wire wire(role);
    while (wire.bytes().size() < 600) {
      char payload[200];
      const std::uint32_t size = random.below(4) == 0 ? random.below(200) : random.below(8);
      for (std::uint32_t at = 0; at < size; ++at)
        payload[at] = static_cast<char>(random.below(20) == 0 ? random.below(256) : 'a' + random.below(26));
      constexpr Opcode kKinds[] = {Opcode::text,         Opcode::binary, Opcode::continuation,
                                   Opcode::continuation, Opcode::ping,   Opcode::pong};
      const Opcode opcode = kKinds[random.below(6)];
      wire.frame(opcode, {payload, is_control(opcode) && size > 125 ? 125 : size},
                 is_control(opcode) || random.below(2) == 0);
    }
    if (random.below(2) == 0)
      wire.close(
          "\x03\xe8"
          "bye");
    const Heard whole = hear_in_steps(wire.bytes(), role, 4096, kLimits);
    MessageDecoder decoder(role);
    MessageDecoder::ControlPayload control;
    Heard pieces;
    for (std::size_t at = 0; at < wire.bytes().size();) {
      const std::size_t left = wire.bytes().size() - at;
      const std::size_t here = 1 + random.below(random.below(2) == 0 ? 8 : 300);
      feed(decoder, {wire.bytes().data() + at, here < left ? here : left}, control, kLimits, pieces);
      at += here < left ? here : left;
    }
    CHECK_TRUE(pieces.text() == whole.text());
  }
}

TEST(WebSocketMessage, a_decoder_is_32_bytes) {
  LONGS_EQUAL(32, sizeof(MessageDecoder));
}

}  // namespace websocket_message_test
