// A stream of events that says anything tells the same however it is cut, tells text only, and each event that it tells
// is told again when it is sent by our own encoder.

#include <coir/utf8.h>

#include <algorithm>

#include "require.h"
#include "stream/event_encoder.h"
#include "stream/event_parser.h"

using namespace coir::http;

namespace {

bool has_none_of(std::string_view text, std::string_view characters) {
  return text.find_first_of(characters) == std::string_view::npos;
}

void check_event(const ServerEvent& event) {
  require(coir::is_utf8(event.data) && coir::is_utf8(event.type) && coir::is_utf8(event.id));
  require(has_none_of(event.data, "\r") && has_none_of(event.type, "\r\n"));
  require(has_none_of(event.id, std::string_view("\0\r\n", 3)));

  require(is_event(event));
  const std::size_t size = encoded_bytes(event);
  char* const encoded = static_cast<char*>(malloc(size));
  char* const buffer = static_cast<char*>(malloc(2 * size));
  const auto written = encode_event(event, {encoded, size});
  require(written.has_value() && written->size() == size);
  EventParser parser;
  std::string_view bytes = *written;
  const ParsedEvent again = parser.parse(bytes, {buffer, 2 * size}, size);
  require(again.state == EventState::event && bytes.empty());
  require(again.event.data == event.data && again.event.type == event.type && again.event.id == event.id);
  free(encoded);
  free(buffer);
}

// Told is all that a parser told: the sizes of each event's views, and what stands in them.
class Told {
 public:
  Told() = default;
  ~Told() { free(bytes_); }
  Told(const Told&) = delete;
  Told& operator=(const Told&) = delete;

  void put(std::string_view text) {
    const std::uint32_t size = static_cast<std::uint32_t>(text.size());
    bytes_ = static_cast<char*>(realloc(bytes_, size_ + sizeof size + size));
    memcpy(bytes_ + size_, &size, sizeof size);
    if (size != 0) memcpy(bytes_ + size_ + sizeof size, text.data(), size);
    size_ += sizeof size + size;
  }
  std::string_view view() const { return {bytes_, size_}; }

 private:
  char* bytes_ = nullptr;
  std::size_t size_ = 0;
};

void read(std::string_view input, std::size_t step, std::size_t buffer_bytes, std::size_t max_line, Told& told) {
  char* const buffer = static_cast<char*>(malloc(buffer_bytes));
  EventParser parser;
  bool failed = false;
  for (std::size_t at = 0; at < input.size() && !failed; at += step) {
    const Exact piece(std::string_view(input.data() + at, std::min(step, input.size() - at)));
    std::string_view bytes = piece.view();
    for (;;) {
      const ParsedEvent parsed = parser.parse(bytes, {buffer, buffer_bytes}, max_line);
      require(parsed.state != EventState::more || bytes.empty());
      failed = parsed.state == EventState::limit;
      if (parsed.state != EventState::event) break;
      check_event(parsed.event);
      require(parsed.event.data.size() + parsed.event.type.size() <= buffer_bytes);
      require(parsed.event.id == parser.last_id({buffer, buffer_bytes}));
      told.put(parsed.event.type);
      told.put(parsed.event.id);
      told.put(parsed.event.data);
    }
  }
  // Nothing is told of what the stream ends in the middle of.
  const auto retry = parser.retry_ms();
  told.put(failed ? "limit" : retry.has_value() ? std::string_view(reinterpret_cast<const char*>(&*retry), 4) : "");
  if (!failed) told.put(parser.last_id({buffer, buffer_bytes}));
  parser.restart({buffer, buffer_bytes});
  if (!failed) told.put(parser.last_id({buffer, buffer_bytes}));
  free(buffer);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  Source source(data, size);
  const std::size_t buffer_bytes = 2 * source.byte();
  const std::size_t max_line = 2 * source.byte();
  const std::size_t step = 1 + source.byte() % 64;
  const std::string_view input = source.rest();

  Told at_once;
  read(input, input.size() + 1, buffer_bytes, max_line, at_once);
  Told slow;
  read(input, step, buffer_bytes, max_line, slow);
  require(slow.view() == at_once.view());
  Told bytewise;
  read(input, 1, buffer_bytes, max_line, bytewise);
  require(bytewise.view() == at_once.view());
  return 0;
}
