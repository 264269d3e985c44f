#include "mqtt/packet.h"

#include <coir/mqtt.h>
#include <string.h>

namespace coir::mqtt {

namespace {

constexpr std::size_t kMostRemaining = 268'435'455;

std::uint16_t number_at(std::string_view bytes, std::size_t at) noexcept {
  return static_cast<std::uint16_t>(static_cast<unsigned char>(bytes[at]) << 8 |
                                    static_cast<unsigned char>(bytes[at + 1]));
}

struct Head {
  std::size_t remaining = 0;
  std::size_t size = 0;  // 0: incomplete
  bool malformed = false;
};

// parse_head reads type and length (2.2): the length has one to four bytes, of seven bits each.
Head parse_head(std::string_view bytes) noexcept {
  std::size_t remaining = 0;
  for (std::size_t i = 1; i <= 4; ++i) {
    if (i >= bytes.size()) return {};
    const auto byte = static_cast<unsigned char>(bytes[i]);
    remaining |= static_cast<std::size_t>(byte & 0x7f) << 7 * (i - 1);
    if (byte < 0x80) return {.remaining = remaining, .size = i + 1};
  }
  return {.malformed = true};
}

ParsedPacket malformed() noexcept {
  return {.state = PacketState::malformed};
}

// parse_large finds the id of a PUBLISH that is too large, which must be acknowledged lest it come for ever.
ParsedPacket parse_large(std::string_view body, Packet packet, std::size_t size, std::size_t most) noexcept {
  ParsedPacket parsed{.state = PacketState::too_large, .packet = packet, .size = size};
  if (packet.qos == 0) return parsed;
  const std::size_t topic = body.size() < 2 ? 0 : number_at(body, 0);
  // A topic that ends behind the buffer cannot be found.
  if (topic + 9 > most || topic + 4 > size) return malformed();
  if (body.size() < topic + 4) return {};
  parsed.packet.id = number_at(body, 2 + topic);
  return parsed.packet.id != 0 ? parsed : malformed();
}

bool parse_publish(std::string_view body, Packet& packet) noexcept {
  if (body.size() < 2) return false;
  const std::size_t topic = number_at(body, 0);
  const std::size_t payload = 2 + topic + (packet.qos != 0 ? 2 : 0);
  if (body.size() < payload) return false;
  packet.topic = body.substr(2, topic);
  if (!is_topic(packet.topic)) return false;
  if (packet.qos != 0) {
    packet.id = number_at(body, 2 + topic);
    if (packet.id == 0) return false;
  }
  packet.payload = body.substr(payload);
  return true;
}

bool parse_rest(std::string_view body, unsigned flags, Packet& packet) noexcept {
  switch (packet.type) {
    case PacketType::connack:
      if (flags != 0 || body.size() != 2 || static_cast<unsigned char>(body[0]) > 1) return false;
      packet.session_present = body[0] == 1;
      packet.code = static_cast<std::uint8_t>(body[1]);
      return packet.code == 0 || !packet.session_present;
    case PacketType::puback:
    case PacketType::pubrec:
    case PacketType::pubcomp:
    case PacketType::pubrel:
    case PacketType::unsuback:
      if (flags != (packet.type == PacketType::pubrel ? 2 : 0) || body.size() != 2) return false;
      packet.id = number_at(body, 0);
      return packet.id != 0;
    case PacketType::suback:
      if (flags != 0 || body.size() < 3) return false;
      packet.id = number_at(body, 0);
      packet.payload = body.substr(2);
      for (const char code : packet.payload) {
        const auto value = static_cast<unsigned char>(code);
        if (value > 2 && value != 0x80) return false;
      }
      return packet.id != 0;
    case PacketType::pingresp:
      return flags == 0 && body.empty();
    default:
      return false;
  }
}

// Output is what the writers below append to. Without room it only counts.
class Output {
 public:
  Output(std::span<char> out, std::uint8_t first, std::size_t remaining) noexcept : out_(out) {
    if (remaining > kMostRemaining) out_ = {};
    byte(first);
    do {
      byte(static_cast<std::uint8_t>((remaining & 0x7f) | (remaining > 0x7f ? 0x80 : 0)));
      remaining >>= 7;
    } while (remaining != 0);
  }
  void byte(std::uint8_t value) noexcept {
    if (used_ < out_.size()) out_[used_] = static_cast<char>(value);
    ++used_;
  }
  void number(std::uint16_t value) noexcept {
    byte(static_cast<std::uint8_t>(value >> 8));
    byte(static_cast<std::uint8_t>(value));
  }
  void bytes(std::string_view text) noexcept {
    if (used_ <= out_.size() && text.size() <= out_.size() - used_ && !text.empty()) {
      memcpy(out_.data() + used_, text.data(), text.size());
    }
    used_ += text.size();
  }
  void text(std::string_view text) noexcept {
    number(static_cast<std::uint16_t>(text.size()));
    bytes(text);
  }
  std::size_t size() const noexcept { return used_ <= out_.size() ? used_ : 0; }

 private:
  std::span<char> out_;
  std::size_t used_ = 0;
};

constexpr std::uint8_t first_byte(PacketType type, unsigned flags = 0) noexcept {
  return static_cast<std::uint8_t>(static_cast<unsigned>(type) << 4 | flags);
}

}  // namespace

ParsedPacket parse_packet(std::string_view bytes, std::size_t most) noexcept {
  if (bytes.empty()) return {};
  const auto first = static_cast<unsigned char>(bytes[0]);
  Packet packet{.type = static_cast<PacketType>(first >> 4)};
  const unsigned flags = first & 15;
  const Head head = parse_head(bytes);
  if (head.malformed) return malformed();
  const bool publish = packet.type == PacketType::publish;
  if (publish) {
    packet.qos = flags >> 1 & 3;
    packet.duplicate = (flags & 8) != 0;
    packet.retained = (flags & 1) != 0;
    if (packet.qos == 3 || (packet.qos == 0 && packet.duplicate)) return malformed();
  }
  if (head.size == 0) return {};
  const std::size_t size = head.size + head.remaining;
  if (size > most) return publish ? parse_large(bytes.substr(head.size), packet, size, most) : malformed();
  if (bytes.size() < size) return {};
  const std::string_view body = bytes.substr(head.size, head.remaining);
  if (publish ? !parse_publish(body, packet) : !parse_rest(body, flags, packet)) return malformed();
  return {.state = PacketState::packet, .packet = packet, .size = size};
}

std::size_t write_connect(std::span<char> out, const ConnectFields& fields) noexcept {
  const bool user = fields.user.data() != nullptr, password = user && fields.password.data() != nullptr;
  std::size_t remaining = 10 + 2 + fields.client_id.size();
  if (fields.will != nullptr) remaining += 4 + fields.will->topic.size() + fields.will->payload.size();
  if (user) remaining += 2 + fields.user.size();
  if (password) remaining += 2 + fields.password.size();
  unsigned flags = fields.clean ? 2 : 0;
  if (fields.will != nullptr) flags |= 4u | fields.will->qos << 3 | (fields.will->retained ? 0x20u : 0);
  if (user) flags |= 0x80;
  if (password) flags |= 0x40;
  Output to(out, first_byte(PacketType::connect), remaining);
  to.text("MQTT");
  to.byte(4);
  to.byte(static_cast<std::uint8_t>(flags));
  to.number(fields.keep_alive_s);
  to.text(fields.client_id);
  if (fields.will != nullptr) {
    to.text(fields.will->topic);
    to.text(fields.will->payload);
  }
  if (user) to.text(fields.user);
  if (password) to.text(fields.password);
  return to.size();
}

std::size_t write_publish(std::span<char> out, const PublishFields& fields) noexcept {
  const bool has_id = fields.qos != 0;
  const unsigned flags =
      (fields.duplicate && has_id ? 8u : 0u) | unsigned{fields.qos} << 1 | (fields.retained ? 1u : 0u);
  Output to(out, first_byte(PacketType::publish, flags),
            2 + fields.topic.size() + (has_id ? 2 : 0) + fields.payload.size());
  to.text(fields.topic);
  if (has_id) to.number(fields.id);
  to.bytes(fields.payload);
  return to.size();
}

std::size_t begin_subscribe(std::span<char> out, std::uint16_t id, std::size_t filters_bytes) noexcept {
  Output to(out, first_byte(PacketType::subscribe, 2), 2 + filters_bytes);
  to.number(id);
  const std::size_t size = to.size();
  return size != 0 && filters_bytes <= out.size() - size ? size : 0;
}

std::size_t write_filter(std::span<char> out, std::string_view filter, std::uint8_t qos) noexcept {
  if (out.size() < filter_bytes(filter)) return 0;
  out[0] = static_cast<char>(filter.size() >> 8);
  out[1] = static_cast<char>(filter.size());
  memcpy(out.data() + 2, filter.data(), filter.size());
  out[2 + filter.size()] = static_cast<char>(qos);
  return filter_bytes(filter);
}

std::size_t write_reply(std::span<char> out, PacketType type, std::uint16_t id) noexcept {
  Output to(out, first_byte(type, type == PacketType::pubrel ? 2 : 0), 2);
  to.number(id);
  return to.size();
}

std::size_t write_bare(std::span<char> out, PacketType type) noexcept {
  return Output(out, first_byte(type), 0).size();
}

}  // namespace coir::mqtt
