// Any bytes as a queue's file. The records that are read from it are written again as the same bytes. A checksum keeps a
// fuzzer out, so the first records get the right one.

#include <string.h>

#include "mqtt/queue_file.h"
#include "require.h"

using namespace coir::mqtt;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view given(reinterpret_cast<const char*>(data), size);
  std::string_view rest = given;
  QueueRecord record;
  char room[4096];
  while (const std::size_t taken = parse_record(rest, record)) {
    require(taken <= rest.size());
    if (taken <= sizeof room) {
      require(write_record(room, record) == taken && memcmp(room, rest.data(), taken) == 0);
    }
    rest.remove_prefix(taken);
  }
  // The input as a message's topic and payload: what may be published is read back.
  const std::size_t topic = given.empty() ? 0 : std::min<std::size_t>(given.size() - 1, data[0]);
  const PublishFields message{.topic = given.substr(0, topic), .payload = given.substr(topic), .id = 1, .qos = 1};
  const std::size_t written = write_record(room, {.message = message});
  if (written == 0) return 0;
  if (parse_record({room, written}, record) == 0) return 0;
  require(record.message.topic == message.topic && record.message.payload == message.payload);
  // One bit that is wrong is noticed.
  room[8 + data[0] % (written - 8)] ^= 1;
  require(parse_record({room, written}, record) == 0);
  return 0;
}
