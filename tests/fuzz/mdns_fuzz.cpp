// Messages of strangers change nothing that a responder promises: it never sends to the group in answer to a message from off
// the link, sends well-formed messages only, its names are names, and it has something to do at a time that comes.

#include <netinet/in.h>
#include <string.h>

#include <algorithm>

#include "mdns/responder.h"
#include "require.h"

using namespace coir;
using namespace coir::mdns;

namespace {

void check_sent(std::span<const unsigned char> message, std::uint32_t by, bool, const Address*) noexcept {
  require(by == 1);
  require(message.size() >= names::MessageHeader::kBytes && message.size() <= 4096);
  names::MessageReader reader(message);
  names::MessageHeader header;
  require(reader.read(header));
  names::Question question;
  for (unsigned i = 0; i < header.questions; ++i) require(reader.read(question));
  names::Record record;
  for (unsigned i = 0; i < 0u + header.answers + header.authorities + header.additionals; ++i) {
    require(reader.read(record));
  }
  require(record.data_at + record.data_size == message.size() || header.answers + header.authorities == 0);
}

void check_named(std::string_view label) noexcept {
  require(bad_name(label) == nullptr);
}

Address peer(unsigned char last, std::uint16_t port) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(port);
  const unsigned char bytes[] = {10, 0, 0, last};
  memcpy(&name.sin_addr, bytes, 4);
  return Address::from_sockaddr(reinterpret_cast<const sockaddr*>(&name), sizeof name);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  static unsigned char room[4096];
  static constexpr std::string_view kLines[] = {"path=/"};
  static constexpr Service kOffered[] = {{.type = "_http._tcp", .port = 80, .text = kLines}};
  static constexpr unsigned char kHere[] = {10, 0, 0, 1};
  Responder responder({check_sent, check_named}, 7);
  require(responder.publish({.name = "board", .services = kOffered}) == nullptr);
  Interfaces interfaces;
  interfaces.count = 1;
  interfaces.list[0].index = 1;
  interfaces.list[0].count = 1;
  interfaces.list[0].addresses[0].size = 4;
  interfaces.list[0].addresses[0].prefix = 24;
  memcpy(interfaces.list[0].addresses[0].bytes, kHere, 4);
  std::int64_t now = 1000;
  responder.set_interfaces(interfaces, now);
  // Each message: how long it comes after the last (in 20 ms), who sends it, its length; then itself.
  while (size >= 3) {
    const std::int64_t arrives = now + data[0] * 20;
    while (responder.next() <= arrives) {
      now = std::max(now, responder.next());
      responder.tick(room, now);
      require(responder.next() > now);
    }
    now = arrives;
    const unsigned who = data[1];
    const std::size_t length = std::min<std::size_t>(data[2], size - 3);
    const Exact exact(std::string_view(reinterpret_cast<const char*>(data) + 3, length));
    const Address from = peer(static_cast<unsigned char>(1 + who % 4), (who & 0x40) != 0 ? 4000 : 5353);
    responder.receive(
        {{reinterpret_cast<const unsigned char*>(exact.data()), exact.size()}, from, 1, (who & 0x80) == 0}, room, now);
    data += 3 + length;
    size -= 3 + length;
  }
  responder.stop(room);
  return 0;
}
