// Frames by RFC 6455, 5.2: each header written is read back, each that may not be is refused at its first wrong byte,
// and masks are the same however the payload is cut and wherever it lies.

#include <CppUTest/TestHarness.h>
#include <coir/http/websocket.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string_view>

#include "net/src/websocket/close_payload.h"
#include "net/src/websocket/frame.h"

namespace websocket_frame_test {

namespace {

using namespace coir::http;
using namespace std::string_view_literals;

constexpr Opcode kOpcodes[] = {Opcode::continuation, Opcode::text, Opcode::binary,
                               Opcode::close,        Opcode::ping, Opcode::pong};

MaskKey key_of(std::string_view bytes) {
  MaskKey key;
  memcpy(&key, bytes.data(), sizeof key);
  return key;
}

struct Read {
  FrameState state = FrameState::more;
  std::size_t used = 0;
  FrameReader reader;
};

// read gives `bytes` to a reader in steps, each in a block of its own.
Read read(std::string_view bytes, WebSocketRole role, std::size_t step) {
  Read out;
  while (out.state == FrameState::more && out.used < bytes.size()) {
    const std::size_t here = step < bytes.size() - out.used ? step : bytes.size() - out.used;
    char* const exact = static_cast<char*>(malloc(here));
    memcpy(exact, bytes.data() + out.used, here);
    std::span<char> piece(exact, here);
    out.state = out.reader.read_header(piece, role);
    out.used += here - piece.size();
    free(exact);
  }
  return out;
}

// read_cut reads `bytes` whole and in steps of every size, which has to give the same.
Read read_cut(std::string_view bytes, WebSocketRole role) {
  const Read whole = read(bytes, role, bytes.size() + 1);
  for (std::size_t step = 1; step <= bytes.size(); ++step) {
    const Read slow = read(bytes, role, step);
    CHECK_TRUE(slow.state == whole.state && slow.used == whole.used);
    if (whole.state == FrameState::complete) {
      CHECK_TRUE(slow.reader.opcode() == whole.reader.opcode() && slow.reader.fin() == whole.reader.fin() &&
                 slow.reader.payload_left() == whole.reader.payload_left());
    }
  }
  return whole;
}

// refused_at is the place of the byte at which a header is refused, or -1.
int refused_at(std::string_view bytes, WebSocketRole role) {
  const Read out = read_cut(bytes, role);
  return out.state == FrameState::bad ? static_cast<int>(out.used) - 1 : -1;
}

void mask_slowly(char* bytes, std::size_t size, std::string_view key, std::size_t offset) {
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(bytes[i] ^ key[(offset + i) % 4]);
}

}  // namespace

TEST_GROUP(WebSocketFrame) {};

TEST(WebSocketFrame, a_header_that_is_written_is_read_back) {
  struct Length {
    std::uint64_t payload;
    std::size_t header;
  };
  constexpr Length kLengths[] = {{0, 2},         {1, 2},      {125, 2},     {126, 4},
                                 {127, 4},       {65'535, 4}, {65'536, 10}, {std::uint64_t{1} << 32, 10},
                                 {INT64_MAX, 10}};
  for (const Opcode opcode : kOpcodes) {
    for (const Length& length : kLengths) {
      if (is_control(opcode) && length.payload > 125) continue;
      for (const bool masked : {false, true}) {
        for (const bool fin : {true, false}) {
          if (is_control(opcode) && !fin) continue;
          char memory[kMostFrameHeader];
          const std::string_view bytes = write_frame_header({.opcode = opcode,
                                                             .fin = fin,
                                                             .masked = masked,
                                                             .key = key_of("\x01\x02\x03\x04"),
                                                             .payload_bytes = length.payload},
                                                            memory);
          LONGS_EQUAL(length.header + (masked ? 4 : 0), bytes.size());
          const Read out = read_cut(bytes, masked ? WebSocketRole::server : WebSocketRole::client);
          CHECK_TRUE(out.state == FrameState::complete);
          LONGS_EQUAL(bytes.size(), out.used);
          CHECK_TRUE(out.reader.opcode() == opcode);
          CHECK_EQUAL(fin, out.reader.fin());
          CHECK_TRUE(out.reader.payload_left() == length.payload);
        }
      }
    }
  }
}

TEST(WebSocketFrame, the_examples_of_the_rfc_are_written_as_they_stand_there) {
  char memory[kMostFrameHeader];
  CHECK_TRUE(write_frame_header({.opcode = Opcode::text, .payload_bytes = 5}, memory) == "\x81\x05");
  CHECK_TRUE(write_frame_header({.opcode = Opcode::text, .fin = false, .payload_bytes = 3}, memory) == "\x01\x03");
  CHECK_TRUE(write_frame_header({.opcode = Opcode::continuation, .payload_bytes = 2}, memory) == "\x80\x02"sv);
  CHECK_TRUE(write_frame_header({.opcode = Opcode::ping, .payload_bytes = 5}, memory) == "\x89\x05");
  CHECK_TRUE(write_frame_header({.opcode = Opcode::binary, .payload_bytes = 256}, memory) == "\x82\x7e\x01\x00"sv);
  CHECK_TRUE(write_frame_header({.opcode = Opcode::binary, .payload_bytes = 65'536}, memory) ==
             "\x82\x7f\0\0\0\0\0\x01\0\0"sv);
  CHECK_TRUE(write_frame_header(
                 {.opcode = Opcode::text, .masked = true, .key = key_of("\x37\xfa\x21\x3d"), .payload_bytes = 5},
                 memory) == "\x81\x85\x37\xfa\x21\x3d");
}

TEST(WebSocketFrame, a_header_cut_short_wants_more) {
  for (const std::string_view bytes : {"\x82"sv, "\x82\xfe"sv, "\x82\xfe\x01"sv, "\x82\xfe\x01\x00"sv,
                                       "\x82\xff\0\0\0\0\0\x01\0\0\x01\x02\x03"sv, "\x89\x80\x01\x02\x03"sv}) {
    CHECK_TRUE(read_cut(bytes, WebSocketRole::server).state == FrameState::more);
  }
}

TEST(WebSocketFrame, each_reserved_bit_is_refused) {
  for (const unsigned bit : {0x10u, 0x20u, 0x40u, 0x70u}) {
    for (const Opcode opcode : kOpcodes) {
      const char bytes[] = {static_cast<char>(0x80 | bit | static_cast<unsigned>(opcode)), static_cast<char>(0x80)};
      LONGS_EQUAL(0, refused_at({bytes, 2}, WebSocketRole::server));
    }
  }
}

TEST(WebSocketFrame, an_opcode_that_is_not_assigned_is_refused) {
  for (unsigned opcode = 0; opcode < 16; ++opcode) {
    const bool assigned = opcode <= 2 || (opcode >= 8 && opcode <= 10);
    const char bytes[] = {static_cast<char>(0x80 | opcode), '\0'};
    LONGS_EQUAL(assigned ? -1 : 0, refused_at({bytes, 2}, WebSocketRole::client));
  }
}

TEST(WebSocketFrame, a_control_frame_in_fragments_is_refused) {
  for (unsigned opcode = 8; opcode <= 10; ++opcode) {
    const char bytes[] = {static_cast<char>(opcode), '\0'};
    LONGS_EQUAL(0, refused_at({bytes, 2}, WebSocketRole::client));
  }
}

TEST(WebSocketFrame, a_control_frame_holds_125_bytes_and_not_126) {
  for (const Opcode opcode : {Opcode::close, Opcode::ping, Opcode::pong}) {
    const char first = static_cast<char>(0x80 | static_cast<unsigned>(opcode));
    const char most[] = {first, 125};
    CHECK_TRUE(read_cut({most, 2}, WebSocketRole::client).state == FrameState::complete);
    const char longer[] = {first, 126, 0, 126};
    LONGS_EQUAL(1, refused_at({longer, 4}, WebSocketRole::client));
    const char longest[] = {first, 127, 0, 0, 0, 0, 0, 1, 0, 0};
    LONGS_EQUAL(1, refused_at({longest, 10}, WebSocketRole::client));
    // Short, but not in its shortest form.
    const char padded[] = {first, 126, 0, 5};
    LONGS_EQUAL(1, refused_at({padded, 4}, WebSocketRole::client));
  }
}

TEST(WebSocketFrame, a_server_wants_a_mask_and_a_client_wants_none) {
  LONGS_EQUAL(1, refused_at("\x82\x05hello", WebSocketRole::server));
  LONGS_EQUAL(1, refused_at("\x82\x00"sv, WebSocketRole::server));
  LONGS_EQUAL(1, refused_at("\x82\x85\x01\x02\x03\x04hello", WebSocketRole::client));
  LONGS_EQUAL(1, refused_at("\x89\x80\x01\x02\x03\x04", WebSocketRole::client));
  LONGS_EQUAL(-1, refused_at("\x82\x85\x01\x02\x03\x04", WebSocketRole::server));
  LONGS_EQUAL(-1, refused_at("\x82\x05", WebSocketRole::client));
}

TEST(WebSocketFrame, a_length_that_is_not_in_its_shortest_form_is_refused) {
  LONGS_EQUAL(3, refused_at("\x82\x7e\x00\x00"sv, WebSocketRole::client));
  LONGS_EQUAL(3, refused_at("\x82\x7e\x00\x7d"sv, WebSocketRole::client));
  LONGS_EQUAL(-1, refused_at("\x82\x7e\x00\x7e"sv, WebSocketRole::client));
  LONGS_EQUAL(9, refused_at("\x82\x7f\0\0\0\0\0\0\0\x7d"sv, WebSocketRole::client));
  LONGS_EQUAL(9, refused_at("\x82\x7f\0\0\0\0\0\0\xff\xff"sv, WebSocketRole::client));
  LONGS_EQUAL(-1, refused_at("\x82\x7f\0\0\0\0\0\x01\0\0"sv, WebSocketRole::client));
}

TEST(WebSocketFrame, a_length_with_its_highest_bit_set_is_refused) {
  LONGS_EQUAL(9, refused_at("\x82\x7f\x80\0\0\0\0\0\0\0"sv, WebSocketRole::client));
  LONGS_EQUAL(9, refused_at("\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff"sv, WebSocketRole::client));
  LONGS_EQUAL(-1, refused_at("\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff"sv, WebSocketRole::client));
}

TEST(WebSocketFrame, a_mask_is_the_same_at_any_alignment_and_length) {
  alignas(8) char memory[64];
  char wanted[64];
  constexpr std::string_view key = "\x11\x22\xf3\x44";
  for (std::size_t start = 0; start < 8; ++start) {
    for (std::size_t size = 0; size + start <= 48; ++size) {
      for (std::size_t i = 0; i < sizeof memory; ++i) memory[i] = wanted[i] = static_cast<char>(i * 37);
      mask_slowly(wanted + start, size, key, 0);
      const MaskKey after = mask_payload({memory + start, size}, key_of(key));
      MEMCMP_EQUAL(wanted, memory, sizeof memory);
      char turned[4];
      for (std::size_t i = 0; i < 4; ++i) turned[i] = key[(size + i) % 4];
      CHECK_TRUE(after == key_of({turned, 4}));
    }
  }
}

TEST(WebSocketFrame, a_mask_is_the_same_however_the_payload_is_cut) {
  constexpr std::size_t kSize = 61;
  constexpr std::string_view key = "\xa1\x02\x00\x7f"sv;
  alignas(8) char wanted[kSize] = {};
  mask_slowly(wanted, kSize, key, 0);
  for (std::size_t first = 0; first <= kSize; ++first) {
    for (std::size_t second = first; second <= kSize; ++second) {
      alignas(8) char memory[kSize] = {};
      MaskKey at = mask_payload({memory, first}, key_of(key));
      at = mask_payload({memory + first, second - first}, at);
      mask_payload({memory + second, kSize - second}, at);
      MEMCMP_EQUAL(wanted, memory, kSize);
    }
  }
}

TEST(WebSocketFrame, masking_twice_gives_the_payload_back) {
  char payload[] = "twice";
  mask_payload({payload, 5}, key_of("\x37\xfa\x21\x3d"));
  CHECK_FALSE(strcmp(payload, "twice") == 0);
  mask_payload({payload, 5}, key_of("\x37\xfa\x21\x3d"));
  STRCMP_EQUAL("twice", payload);
}

TEST(WebSocketFrame, a_reader_takes_payloads_in_pieces_and_goes_on_to_the_next_frame) {
  char bytes[] = "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58\x89\x80\x01\x02\x03\x04";
  std::span<char> left(bytes, sizeof bytes - 1);
  FrameReader reader;
  CHECK_FALSE(reader.begun());
  CHECK_TRUE(reader.read_header(left, WebSocketRole::server) == FrameState::complete);
  CHECK_TRUE(reader.has_header() && reader.begun());
  std::span<char> piece = reader.take_payload(left, 2);
  CHECK_TRUE(std::string_view(piece.data(), 2) == "He");
  LONGS_EQUAL(3, reader.payload_left());
  piece = reader.take_payload(left, 3);
  CHECK_TRUE(std::string_view(piece.data(), 3) == "llo");
  LONGS_EQUAL(0, reader.payload_left());
  reader.next_frame();
  CHECK_FALSE(reader.begun());
  CHECK_TRUE(reader.read_header(left, WebSocketRole::server) == FrameState::complete);
  CHECK_TRUE(reader.opcode() == Opcode::ping);
  LONGS_EQUAL(0, left.size());
}

TEST(WebSocketFrame, a_reader_is_sixteen_bytes) {
  LONGS_EQUAL(16, sizeof(FrameReader));
}

TEST(WebSocketFrame, every_close_code_is_sent_and_taken_by_the_registry) {
  for (unsigned number = 0; number <= 0xffff; ++number) {
    const bool good =
        (number >= 1000 && number <= 1003) || (number >= 1007 && number <= 1014) || (number >= 3000 && number <= 4999);
    const CloseCode code = static_cast<CloseCode>(number);
    if (may_be_sent(code) != good) LONGS_EQUAL(number, -1);
    const char payload[] = {static_cast<char>(number >> 8), static_cast<char>(number & 0xff)};
    const ClosePayload read = read_close({payload, 2});
    if (read.code != code || read.error != (good ? CloseCode::normal : CloseCode::protocol_error))
      LONGS_EQUAL(number, -1);
    char memory[kMostControlPayload];
    const auto written = write_close(code, "", memory);
    if (code == CloseCode::no_status) {
      CHECK_TRUE(written.has_value() && written->empty());
    } else if (written.has_value() != good || (good && *written != std::string_view(payload, 2))) {
      LONGS_EQUAL(number, -1);
    }
  }
}

TEST(WebSocketFrame, a_close_without_payload_has_no_status) {
  const ClosePayload read = read_close("");
  CHECK_TRUE(read.code == CloseCode::no_status && read.error == CloseCode::normal && read.reason.empty());
}

TEST(WebSocketFrame, half_a_close_code_is_a_protocol_error) {
  CHECK_TRUE(read_close("\x03").error == CloseCode::protocol_error);
}

TEST(WebSocketFrame, a_reason_is_utf8_of_123_bytes_at_most) {
  CHECK_TRUE(read_close("\x03\xe8"
                        "f\xc3\xbcr heute")
                 .reason == "f\xc3\xbcr heute");
  CHECK_TRUE(read_close("\x03\xe8\xff").error == CloseCode::invalid_payload);
  CHECK_TRUE(read_close("\x03\xe8\xc3").error == CloseCode::invalid_payload);
  char memory[kMostControlPayload];
  char reason[kMostCloseReason + 1];
  memset(reason, 'x', sizeof reason);
  const auto most = write_close(CloseCode::going_away, {reason, kMostCloseReason}, memory);
  CHECK_TRUE(most.has_value() && most->size() == kMostControlPayload);
  CHECK_TRUE(read_close(*most).code == CloseCode::going_away && read_close(*most).reason.size() == kMostCloseReason);
  CHECK_TRUE(write_close(CloseCode::going_away, {reason, kMostCloseReason + 1}, memory).error() ==
             coir::ErrorCode::limit);
  CHECK_TRUE(write_close(CloseCode::normal, "\xff", memory).error() == coir::ErrorCode::invalid);
  CHECK_TRUE(write_close(CloseCode::abnormal, "", memory).error() == coir::ErrorCode::invalid);
}

}  // namespace websocket_frame_test
