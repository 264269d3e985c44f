// A client brings back any bytes as a state. Bytes that were not sealed are not opened. A sealed state opens as it was, and
// does not with any one byte changed.

#include "mcp/message/request_state.h"
#include "require.h"

using namespace coir;
using namespace coir::mcp;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size > 1024) return 0;
  Source source(data, size);
  const unsigned place = source.byte() * 256 + source.byte();
  const char other = static_cast<char>(source.byte());
  const std::string_view text = source.rest();
  const StateBinding binding = {
      .key = "a key that nobody has", .principal = "p", .method = "m", .name = "n", .arguments = "{}"};
  const Exact given(text);
  const Exact room(text.size() + 1);
  // A digest of 32 bytes is not found by chance.
  require(!open_state(binding, given.view(), 0, {room.data(), room.size()}));

  static char scratch[2048], sealed_room[4096], opened_room[4096];
  const auto sealed = seal_state(binding, text, 100, scratch, sealed_room);
  require(sealed && sealed->size() == sealed_bytes(text.size()));
  const auto opened = open_state(binding, *sealed, 100, opened_room);
  require(opened && *opened == text);
  char& changed = sealed_room[place % sealed->size()];
  if (changed == other) return 0;
  changed = other;
  require(!open_state(binding, *sealed, 100, opened_room));
  return 0;
}
