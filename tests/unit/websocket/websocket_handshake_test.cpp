// Handshakes by RFC 6455, 4: the digest by its standard's own vectors, the server's rules one by one, and the client's.

#include <CppUTest/TestHarness.h>
#include <coir/http/wire/request.h>
#include <coir/http/wire/response.h>

#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string_view>

#include "net/src/websocket/accept.h"
#include "net/src/websocket/handshake.h"
#include "net/src/websocket/sha1.h"

namespace websocket_handshake_test {

namespace {

using namespace coir::http;
using namespace std::string_view_literals;

constexpr std::string_view kKey = "dGhlIHNhbXBsZSBub25jZQ==";
constexpr std::string_view kAccept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
#define UPGRADE "Upgrade: websocket\r\nConnection: Upgrade\r\n"
#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define VERSION "Sec-WebSocket-Version: 13\r\n"

// Asked is a parsed request; it holds the bytes that the request points into.
struct Asked {
  explicit Asked(std::string_view fields, std::string_view line = "GET /chat HTTP/1.1") {
    const int size = snprintf(head, sizeof head, "%.*s\r\nHost: board.local\r\n%.*s\r\n", static_cast<int>(line.size()),
                              line.data(), static_cast<int>(fields.size()), fields.data());
    const ParseResult result = parse_head({head, static_cast<std::size_t>(size)}, 0, lines, {}, request);
    CHECK_TRUE(result.state == ParseState::complete);
  }

  char head[1024];
  Header lines[32];
  Request request;
};

int status_of(std::string_view fields, std::string_view line = "GET /chat HTTP/1.1") {
  return read_handshake(Asked(fields, line).request, {}).status;
}

std::string_view digest_text(std::string_view bytes, char (&out)[41]) {
  const auto digest = sha1(bytes);
  for (std::size_t i = 0; i < digest.size(); ++i)
    snprintf(out + 2 * i, 3, "%02x", static_cast<unsigned char>(digest[i]));
  return {out, 40};
}

// An answer as a client's parser gives it.
constexpr Header kAnswer[] = {{"Upgrade", "WebSocket"}, {"Connection", "upgrade"}, {"Sec-WebSocket-Accept", kAccept}};

struct Answer {
  explicit Answer(std::initializer_list<Header> more, std::size_t without = 3) {
    for (std::size_t i = 0; i < 3; ++i) {
      if (i != without) fields[count++] = kAnswer[i];
    }
    for (const Header& line : more) fields[count++] = line;
  }
  auto check(int status = 101, std::span<const std::string_view> offered = {}) const {
    return check_handshake(status, {fields, count}, kKey, offered);
  }

  Header fields[16];
  std::size_t count = 0;
};

}  // namespace

TEST_GROUP(WebSocketHandshake) {};

TEST(WebSocketHandshake, sha1_gives_the_digests_of_its_standard) {
  char out[41];
  CHECK_TRUE(digest_text("", out) == "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  CHECK_TRUE(digest_text("abc", out) == "a9993e364706816aba3e25717850c26c9cd0d89d");
  CHECK_TRUE(digest_text("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", out) ==
             "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  static char million[1'000'000];
  memset(million, 'a', sizeof million);
  CHECK_TRUE(digest_text({million, sizeof million}, out) == "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

TEST(WebSocketHandshake, sha1_pads_every_length_around_a_block) {
  struct {
    std::size_t size;
    std::string_view digest;
  } const kVectors[] = {
      {55, "c1c8bbdc22796e28c0e15163d20899b65621d65a"},  {56, "c2db330f6083854c99d4b5bfb6e8f29f201be699"},
      {63, "03f09f5b158a7a8cdad920bddc29b81c18a551f5"},  {64, "0098ba824b5c16427bd7a1122a5a442a25ec644d"},
      {65, "11655326c708d70319be2610e8a57d9a5b959d3b"},  {119, "ee971065aaa017e0632a8ca6c77bb3bf8b1dfc56"},
      {120, "f34c1488385346a55709ba056ddd08280dd4c6d6"}, {128, "ad5b3fdbcb526778c2839d2f151ea753995e26a0"},
  };
  char bytes[128];
  memset(bytes, 'a', sizeof bytes);
  char out[41];
  for (const auto& vector : kVectors) CHECK_TRUE(digest_text({bytes, vector.size}, out) == vector.digest);
}

TEST(WebSocketHandshake, the_key_of_the_rfc_has_its_answer) {
  const auto accept = websocket_accept(kKey);
  CHECK_TRUE(std::string_view(accept.data(), accept.size()) == kAccept);
}

TEST(WebSocketHandshake, a_key_made_of_random_bytes_is_one) {
  char random[16];
  for (std::size_t i = 0; i < 16; ++i) random[i] = static_cast<char>(i + 1);
  const auto key = websocket_key(random);
  CHECK_TRUE(std::string_view(key.data(), key.size()) == "AQIDBAUGBwgJCgsMDQ4PEA==");
  CHECK_TRUE(is_websocket_key({key.data(), key.size()}));
}

TEST(WebSocketHandshake, a_request_by_the_rfc_is_accepted) {
  const Asked asked(UPGRADE KEY VERSION);
  const Handshake handshake = read_handshake(asked.request, {});
  LONGS_EQUAL(101, handshake.status);
  CHECK_TRUE(handshake.key == kKey);
  CHECK_TRUE(handshake.subprotocol.empty());
}

TEST(WebSocketHandshake, upgrade_and_connection_are_lists_without_case) {
  LONGS_EQUAL(101, status_of("Upgrade: h2c, WebSocket\r\nConnection: keep-alive, UPGRADE\r\n" KEY VERSION));
  LONGS_EQUAL(
      101,
      status_of("Upgrade: h2c\r\nUpgrade: websocket\r\nConnection: keep-alive\r\nConnection: upgrade\r\n" KEY VERSION));
}

TEST(WebSocketHandshake, a_handshake_without_a_key_is_400) {
  LONGS_EQUAL(400, status_of(UPGRADE VERSION));
}

TEST(WebSocketHandshake, a_key_that_is_not_of_16_bytes_is_400) {
  for (const char* key : {"", "dGhlIHNhbXBsZSBub25jZQ", "dGhlIHNhbXBsZSBub25jZQ=", "dGhlIHNhbXBsZSBub25j",
                          "dGhlIHNhbXBsZSBub25jZQ=-", "dGhlIHNhbXBsZSBub25jZQ==AAAA", "dGhlIHNhbXBsZSBub25jZWU=",
                          "dGhlIHNhbXBsZSBub25jZ===", "dGhlIHNhbXBsZSBub25j Q==", "dGhlIHNhbXBsZSBub25j_Q=="}) {
    char fields[300];
    snprintf(fields, sizeof fields, UPGRADE VERSION "Sec-WebSocket-Key: %s\r\n", key);
    LONGS_EQUAL_TEXT(400, status_of(fields), key);
  }
  LONGS_EQUAL(400, status_of(UPGRADE VERSION KEY KEY));
}

TEST(WebSocketHandshake, another_version_is_426_and_told_which_is_spoken) {
  for (const char* version : {"8", "7", "0", "14", "013", "1", "13, 8", "x"}) {
    char fields[300];
    snprintf(fields, sizeof fields, UPGRADE KEY "Sec-WebSocket-Version: %s\r\n", version);
    LONGS_EQUAL_TEXT(426, status_of(fields), version);
  }
  LONGS_EQUAL(426, status_of(UPGRADE "Sec-WebSocket-Version: 8\r\n"));
  CHECK_TRUE(refusal_fields(426).find("Sec-WebSocket-Version: 13\r\n") != std::string_view::npos);
}

TEST(WebSocketHandshake, a_version_that_is_missing_or_there_twice_is_400) {
  LONGS_EQUAL(400, status_of(UPGRADE KEY));
  LONGS_EQUAL(400, status_of(UPGRADE KEY VERSION VERSION));
}

TEST(WebSocketHandshake, a_request_that_asks_for_no_upgrade_is_426) {
  LONGS_EQUAL(426, status_of(""));
  LONGS_EQUAL(426, status_of("Upgrade: h2c\r\nConnection: Upgrade\r\n" KEY VERSION));
  CHECK_TRUE(refusal_fields(426).find("Upgrade: websocket\r\n") != std::string_view::npos);
}

TEST(WebSocketHandshake, an_upgrade_that_connection_does_not_name_is_400) {
  LONGS_EQUAL(400, status_of("Upgrade: websocket\r\n" KEY VERSION));
  LONGS_EQUAL(400, status_of("Upgrade: websocket\r\nConnection: keep-alive\r\n" KEY VERSION));
}

TEST(WebSocketHandshake, another_method_is_405_and_another_minor_version_400) {
  LONGS_EQUAL(405, status_of(UPGRADE KEY VERSION, "POST /chat HTTP/1.1"));
  LONGS_EQUAL(405, status_of(UPGRADE KEY VERSION, "HEAD /chat HTTP/1.1"));
  LONGS_EQUAL(400, status_of(UPGRADE KEY VERSION, "GET /chat HTTP/1.0"));
  CHECK_TRUE(refusal_fields(405) == "Allow: GET\r\n");
  CHECK_TRUE(refusal_fields(400).empty());
}

TEST(WebSocketHandshake, a_request_with_content_is_400) {
  LONGS_EQUAL(400, status_of(UPGRADE KEY VERSION "Content-Length: 5\r\n"));
  LONGS_EQUAL(400, status_of(UPGRADE KEY VERSION "Transfer-Encoding: chunked\r\n"));
}

TEST(WebSocketHandshake, the_clients_first_subprotocol_that_is_spoken_is_chosen) {
  constexpr std::string_view spoken[] = {"mqtt", "chat.v2", "chat.v1"};
  struct {
    std::string_view fields;
    std::string_view chosen;
  } const kVectors[] = {
      {"", ""},
      {"Sec-WebSocket-Protocol: chat.v1, chat.v2\r\n", "chat.v1"},
      {"Sec-WebSocket-Protocol: soap,chat.v2 ,mqtt\r\n", "chat.v2"},
      {"Sec-WebSocket-Protocol: soap\r\nSec-WebSocket-Protocol: mqtt\r\n", "mqtt"},
      {"Sec-WebSocket-Protocol: soap, wamp\r\n", ""},
      {"Sec-WebSocket-Protocol: MQTT\r\n", ""},
      {"Sec-WebSocket-Protocol: , mqtt,\r\n", "mqtt"},
      {"Sec-WebSocket-Protocol: \r\n", ""},
  };
  for (const auto& vector : kVectors) {
    char fields[300];
    snprintf(fields, sizeof fields, UPGRADE KEY VERSION "%s", vector.fields.data());
    const Asked asked(fields);
    const Handshake handshake = read_handshake(asked.request, spoken);
    LONGS_EQUAL(101, handshake.status);
    CHECK_TRUE_TEXT(handshake.subprotocol == vector.chosen, vector.fields.data());
  }
}

TEST(WebSocketHandshake, a_subprotocol_that_is_no_token_is_400) {
  LONGS_EQUAL(400, status_of(UPGRADE KEY VERSION "Sec-WebSocket-Protocol: a b\r\n"));
  LONGS_EQUAL(400, status_of(UPGRADE KEY VERSION "Sec-WebSocket-Protocol: mqtt, a/b\r\n"));
}

TEST(WebSocketHandshake, the_servers_head_holds_the_answer_and_no_extension) {
  constexpr std::string_view spoken[] = {"mqtt"};
  const Asked asked(
      UPGRADE KEY VERSION
      "Sec-WebSocket-Protocol: mqtt\r\nSec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n");
  const Handshake handshake = read_handshake(asked.request, spoken);
  char memory[512];
  ResponseHead head(memory);
  head.start(101, "");
  write_handshake_fields(head, handshake);
  CHECK_TRUE(head.finish() ==
             "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
             "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n");
}

TEST(WebSocketHandshake, the_clients_lines_are_accepted_by_the_server) {
  constexpr std::string_view offered[] = {"chat.v2", "chat.v1"};
  char memory[512];
  ResponseHead lines(memory);
  write_handshake_fields(lines, kKey, offered);
  const Asked asked(lines.lines());
  const Handshake handshake = read_handshake(asked.request, {&offered[1], 1});
  LONGS_EQUAL(101, handshake.status);
  CHECK_TRUE(handshake.subprotocol == "chat.v1");
  constexpr std::string_view no_token[] = {"a\r\nb"};
  ResponseHead spoilt(memory);
  write_handshake_fields(spoilt, kKey, no_token);
  CHECK_TRUE(spoilt.lines().empty());
}

TEST(WebSocketHandshake, a_client_takes_the_answer_to_its_key_only) {
  CHECK_TRUE(Answer({}).check().has_value());
  CHECK_TRUE(Answer({}).check(200).error() == coir::ErrorCode::protocol);
  CHECK_TRUE(Answer({}).check(426).error() == coir::ErrorCode::protocol);
  for (std::size_t without = 0; without < 3; ++without) CHECK_FALSE(Answer({}, without).check().has_value());
  CHECK_FALSE(Answer({{"Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOp="}}, 2).check().has_value());
  CHECK_FALSE(Answer({{"Sec-WebSocket-Accept", kAccept}}).check().has_value());
  CHECK_FALSE(Answer({{"Upgrade", "h2c"}}, 0).check().has_value());
  CHECK_FALSE(Answer({{"Upgrade", "websocket"}}).check().has_value());
  CHECK_FALSE(Answer({{"Sec-WebSocket-Extensions", "permessage-deflate"}}).check().has_value());
}

TEST(WebSocketHandshake, a_client_takes_no_subprotocol_that_it_did_not_offer) {
  constexpr std::string_view offered[] = {"chat.v2", "chat.v1"};
  CHECK_TRUE(*Answer({}).check(101, offered) == "");
  CHECK_TRUE(*Answer({{"Sec-WebSocket-Protocol", "chat.v1"}}).check(101, offered) == "chat.v1");
  CHECK_FALSE(Answer({{"Sec-WebSocket-Protocol", "mqtt"}}).check(101, offered).has_value());
  CHECK_FALSE(Answer({{"Sec-WebSocket-Protocol", ""}}).check(101, offered).has_value());
  CHECK_FALSE(Answer({{"Sec-WebSocket-Protocol", "chat.v1"}}).check().has_value());
  CHECK_FALSE(Answer({{"Sec-WebSocket-Protocol", "chat.v1"}, {"Sec-WebSocket-Protocol", "chat.v1"}})
                  .check(101, offered)
                  .has_value());
}

}  // namespace websocket_handshake_test
