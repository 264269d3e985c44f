// A broker says anything. However it is cut the same packets are heard, none is over its ceiling, and a PUBLISH that is
// heard is heard again when it is written by us.

#include <string.h>

#include "mqtt/packet.h"
#include "require.h"

using namespace coir::mqtt;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  constexpr std::size_t kMost = 256;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (!rest.empty()) {
    const ParsedPacket parsed = parse_packet(rest, kMost);
    if (parsed.state == PacketState::malformed) break;
    if (parsed.state == PacketState::incomplete) {
      require(rest.size() < kMost);
      break;
    }
    require(parsed.size > 1);
    if (parsed.state == PacketState::too_large) {
      require(parsed.size > kMost && parsed.packet.type == PacketType::publish);
      require((parsed.packet.id != 0) == (parsed.packet.qos != 0));
      if (parsed.size >= rest.size()) break;
      rest.remove_prefix(parsed.size);
      continue;
    }
    require(parsed.size <= kMost && parsed.size <= rest.size());
    for (std::size_t cut = 0; cut < parsed.size; ++cut) {
      require(parse_packet(rest.substr(0, cut), kMost).state == PacketState::incomplete);
    }
    const Packet& packet = parsed.packet;
    if (packet.type == PacketType::publish) {
      char room[kMost + 8];
      const std::size_t written = write_publish(room, {.topic = packet.topic,
                                                       .payload = packet.payload,
                                                       .id = packet.id,
                                                       .qos = packet.qos,
                                                       .retained = packet.retained,
                                                       .duplicate = packet.duplicate});
      require(written != 0);
      const ParsedPacket again = parse_packet({room, written}, kMost);
      require(again.state == PacketState::packet && again.packet.topic == packet.topic);
      require(again.packet.payload == packet.payload && again.packet.id == packet.id);
    }
    rest.remove_prefix(parsed.size);
  }
  return 0;
}
