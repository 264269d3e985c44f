// The packets of MQTT, as mqtt/packet.h reads and writes them, and the topics of coir/mqtt.h.

#include "mqtt/packet.h"

#include <CppUTest/TestHarness.h>
#include <coir/mqtt.h>

#include <array>

namespace mqtt_packet_test {

using namespace coir::mqtt;
using namespace std::string_view_literals;

namespace {

constexpr std::size_t kMost = 256;

PacketState state_of(std::string_view bytes) {
  return parse_packet(bytes, kMost).state;
}

bool is_malformed(std::string_view bytes) {
  return state_of(bytes) == PacketState::malformed;
}

}  // namespace

TEST_GROUP(MqttPacket) {};

TEST(MqttPacket, each_cut_of_a_packet_is_incomplete) {
  std::array<char, kMost> room;
  const std::size_t size =
      write_publish(room, {.topic = "a/b", .payload = "hello", .id = 7, .qos = 1, .retained = true});
  const std::string_view whole(room.data(), size);
  for (std::size_t i = 0; i < size; ++i) CHECK_TRUE(state_of(whole.substr(0, i)) == PacketState::incomplete);
  const ParsedPacket parsed = parse_packet(whole, kMost);
  CHECK_TRUE(parsed.state == PacketState::packet);
  CHECK_EQUAL(size, parsed.size);
  CHECK_TRUE(parsed.packet.topic == "a/b" && parsed.packet.payload == "hello");
  CHECK_TRUE(parsed.packet.id == 7 && parsed.packet.qos == 1 && parsed.packet.retained && !parsed.packet.duplicate);
}

TEST(MqttPacket, writes_the_bytes_of_the_specification) {
  std::array<char, kMost> room;
  const PublishFields will{.topic = "w", .payload = "x", .qos = 1, .retained = true};
  std::size_t size =
      write_connect(room, {.client_id = "c", .user = "u", .password = "p", .will = &will, .keep_alive_s = 60});
  CHECK_TRUE(std::string_view(room.data(), size) == "\x10\x19\0\4MQTT\4\xee\0\x3c\0\1c\0\1w\0\1x\0\1u\0\1p"sv);
  size = begin_subscribe(room, 10, filter_bytes("a/#"));
  size += write_filter(std::span(room).subspan(size), "a/#", 1);
  CHECK_TRUE(std::string_view(room.data(), size) == "\x82\x08\0\x0a\0\3a/#\1"sv);
  size = write_reply(room, PacketType::puback, 0x1234);
  CHECK_TRUE(std::string_view(room.data(), size) == "\x40\2\x12\x34"sv);
  size = write_bare(room, PacketType::pingreq);
  CHECK_TRUE(std::string_view(room.data(), size) == "\xc0\0"sv);
}

TEST(MqttPacket, a_text_that_does_not_fit_is_not_written) {
  std::array<char, 16> room;
  const std::size_t whole = write_publish(room, {.topic = "a", .payload = "0123456789"});
  CHECK_EQUAL(15u, whole);
  for (std::size_t i = 0; i < whole; ++i) {
    CHECK_EQUAL(0u, write_publish(std::span(room).first(i), {.topic = "a", .payload = "0123456789"}));
  }
  CHECK_EQUAL(0u, begin_subscribe(room, 1, 64));
}

TEST(MqttPacket, a_packet_that_no_broker_sends_is_malformed) {
  CHECK_TRUE(is_malformed("\x30\xff\xff\xff\xff\x01"sv));  // a length of five bytes
  CHECK_TRUE(is_malformed("\x36\x05\0\1a\0\1"sv));         // QoS 3
  CHECK_TRUE(is_malformed("\x38\x03\0\1a"sv));             // a duplicate of QoS 0
  CHECK_TRUE(is_malformed("\x32\x05\0\1a\0\0"sv));         // id 0
  CHECK_TRUE(is_malformed("\x32\x04\0\1a\0"sv));           // an id cut off
  CHECK_TRUE(is_malformed("\x30\x03\0\2a"sv));             // a topic longer than the packet
  CHECK_TRUE(is_malformed("\x30\x03\0\1+"sv));             // a wildcard
  CHECK_TRUE(is_malformed("\x30\x02\0\0"sv));              // no topic
  CHECK_TRUE(is_malformed("\x30\x03\0\1\0"sv));            // NUL
  CHECK_TRUE(is_malformed("\x30\x03\0\1\xff"sv));          // no UTF-8
  CHECK_TRUE(is_malformed("\x20\x02\2\0"sv));              // flags of CONNACK
  CHECK_TRUE(is_malformed("\x20\x02\1\5"sv));              // refused with a session
  CHECK_TRUE(is_malformed("\x40\x02\0\0"sv));              // acknowledges nothing
  CHECK_TRUE(is_malformed("\x60\x02\0\1"sv));              // PUBREL without its flag
  CHECK_TRUE(is_malformed("\x90\x03\0\1\3"sv));            // a code that does not exist
  CHECK_TRUE(is_malformed("\xd0\x01x"sv));                 // PINGRESP with content
  for (const char* first : {"\x10\2ab", "\x82\2ab", "\xa2\2ab", "\xc0\2ab", "\xe0\2ab", "\xf0\2ab", "\x0f\2ab"}) {
    CHECK_TRUE(is_malformed({first, 4}));  // what only a client sends, and types that do not exist
  }
}

TEST(MqttPacket, the_id_of_a_message_that_is_too_large_is_returned) {
  const ParsedPacket parsed = parse_packet("\x34\x80\x08\0\1a\0\x09"sv, kMost);
  CHECK_TRUE(parsed.state == PacketState::too_large);
  CHECK_TRUE(parsed.packet.id == 9 && parsed.packet.qos == 2);
  CHECK_EQUAL(1027u, parsed.size);
  CHECK_TRUE(state_of("\x34\x80\x08\0\1a\0"sv) == PacketState::incomplete);
  CHECK_TRUE(state_of("\x30\x80\x08"sv) == PacketState::too_large);  // QoS 0 has none
  CHECK_TRUE(is_malformed("\x34\x80\x08\x02\0"sv));                  // its id lies behind what is kept
  CHECK_TRUE(is_malformed("\x90\x80\x08"sv));                        // nothing else may be so large
}

TEST_GROUP(MqttTopic) {};

TEST(MqttTopic, is_checked) {
  CHECK_TRUE(is_topic("a") && is_topic("/") && is_topic("a//b") && is_topic("$SYS/x") && is_topic("\xc3\xa4"));
  CHECK_FALSE(is_topic("") || is_topic("a/+") || is_topic("a#") || is_topic("a\0b"sv) || is_topic("\xc3"));
  CHECK_TRUE(may_publish("a/$b"));
  CHECK_FALSE(may_publish("$SYS/x"));
  CHECK_TRUE(is_filter("#") && is_filter("+") && is_filter("a/+/#") && is_filter("+/+") && is_filter("/"));
  CHECK_FALSE(is_filter("") || is_filter("a/#/b") || is_filter("a#") || is_filter("a+/b") || is_filter("#/"));
}

TEST(MqttTopic, matches_as_the_specification_has_it) {
  CHECK_TRUE(matches("sport/#", "sport") && matches("sport/#", "sport/a/b") && matches("#", "a/b"));
  CHECK_TRUE(matches("sport/+", "sport/") && matches("+/+", "/finance") && matches("/+", "/finance"));
  CHECK_TRUE(matches("$SYS/#", "$SYS/a") && matches("$SYS/+/b", "$SYS/a/b") && matches("a/b", "a/b"));
  CHECK_FALSE(matches("+", "/finance") || matches("sport/+", "sport") || matches("sport/+", "sport/a/b"));
  // For a shared subscription the broker sends the messages that its filter takes in.
  CHECK_TRUE(matches("$share/g/sport/#", "sport/a") && matches("$share/g/+", "a") && matches("$share/g//a", "/a"));
  CHECK_FALSE(matches("$share/g/a", "b") || matches("$share/g/#", "$SYS/a") || matches("$share/g/a", "$share/g/a"));
  CHECK_FALSE(matches("$share/g", "g") || matches("$share", "a"));
  CHECK_FALSE(matches("#", "$SYS/a") || matches("+/a", "$SYS/a") || matches("a/b", "a") || matches("a", "a/b"));
}

TEST_GROUP(MqttUrl) {};

TEST(MqttUrl, is_taken_apart) {
  auto url = parse_broker_url("mqtt://broker");
  CHECK_TRUE(url && !url->secure && url->host == "broker" && url->port == 1883 && url->user.empty());
  url = parse_broker_url("mqtts://me@[::1]/a/b");
  CHECK_TRUE(url && url->secure && url->host == "::1" && url->port == 8883 && url->user == "me" && url->path == "a/b");
  url = parse_broker_url("mqtt://10.0.0.1:2000/");
  CHECK_TRUE(url && url->host == "10.0.0.1" && url->port == 2000 && url->path.empty());
}

TEST(MqttUrl, is_refused_when_it_is_malformed_or_holds_a_password) {
  const auto why = [](std::string_view text) { return parse_broker_url(text).error().code; };
  CHECK_TRUE(why("mqtt://me:secret@broker") == coir::ErrorCode::untrusted);
  CHECK_TRUE(why("http://broker") == coir::ErrorCode::unsupported);
  for (const std::string_view bad :
       {"", "broker", "mqtt://", "mqtt://:1", "mqtt://a:", "mqtt://a:0", "mqtt://a:65536", "mqtt://a:1x", "mqtt://@a",
        "mqtt://[::1", "mqtt://[::1]1", "mqtt://a b", "mqtt://a?b", "mqtt://m%65@a"}) {
    CHECK_TRUE(why(bad) == coir::ErrorCode::invalid);
  }
}

}  // namespace mqtt_packet_test
