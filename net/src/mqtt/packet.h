#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

// The control packets of MQTT 3.1.1, without input or output. Nothing here allocates or waits.
namespace coir::mqtt {

enum class PacketType : std::uint8_t {
  connect = 1,
  connack,
  publish,
  puback,
  pubrec,
  pubrel,
  pubcomp,
  subscribe,
  suback,
  unsubscribe,
  unsuback,
  pingreq,
  pingresp,
  disconnect,
};

// Packet is one that a broker sends. Its views point into the parsed bytes.
struct Packet {
  PacketType type{};
  std::uint8_t qos = 0;  // of PUBLISH: 0 to 2
  bool retained = false;
  bool duplicate = false;
  bool session_present = false;  // of CONNACK
  std::uint8_t code = 0;         // of CONNACK: 0 is consent
  std::uint16_t id = 0;
  std::string_view topic;
  std::string_view payload;  // of PUBLISH; of SUBACK a code for each filter
};

enum class PacketState : std::uint8_t {
  packet,
  incomplete,  // more bytes are needed
  too_large,   // a PUBLISH of over `most` bytes: `packet` has its type, QoS and id, but no topic and no payload
  malformed,   // no client goes on behind it
};

struct ParsedPacket {
  PacketState state = PacketState::incomplete;
  Packet packet;
  std::size_t size = 0;  // of the whole packet; of one that is too large it may exceed what is there
};

// parse_packet takes the packet at the front of `bytes`. Packets that only clients send are malformed, and so are those
// over `most` bytes other than PUBLISH. `most` is at least 128.
[[nodiscard]] ParsedPacket parse_packet(std::string_view bytes, std::size_t most) noexcept;

struct PublishFields {
  std::string_view topic;
  std::string_view payload;
  std::uint16_t id = 0;
  std::uint8_t qos = 0;
  bool retained = false;
  bool duplicate = false;
};

struct ConnectFields {
  std::string_view client_id;
  std::string_view user;      // data() == nullptr: none
  std::string_view password;  // the same; counts only with a user
  const PublishFields* will = nullptr;
  std::uint16_t keep_alive_s = 0;
  bool clean = true;
};

// Each of these writes a packet to the front of `out` and returns its length; 0: it does not fit. Texts are at most
// 65,535 bytes long. begin_subscribe leaves room for `filters_bytes`, the sum of filter_bytes over all filters, which
// write_filter then writes one by one.
[[nodiscard]] std::size_t write_connect(std::span<char> out, const ConnectFields& fields) noexcept;
[[nodiscard]] std::size_t write_publish(std::span<char> out, const PublishFields& fields) noexcept;
[[nodiscard]] std::size_t begin_subscribe(std::span<char> out, std::uint16_t id, std::size_t filters_bytes) noexcept;
[[nodiscard]] std::size_t write_filter(std::span<char> out, std::string_view filter, std::uint8_t qos) noexcept;
[[nodiscard]] std::size_t write_reply(std::span<char> out, PacketType type, std::uint16_t id) noexcept;
[[nodiscard]] std::size_t write_bare(std::span<char> out, PacketType type) noexcept;

constexpr std::size_t filter_bytes(std::string_view filter) noexcept {
  return filter.size() + 3;
}

}  // namespace coir::mqtt
