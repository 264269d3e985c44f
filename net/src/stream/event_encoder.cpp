#include "stream/event_encoder.h"

#include <coir/format.h>
#include <coir/http/wire/response.h>

#include "http/text/characters.h"

namespace coir::http {
namespace {

constexpr bool is_line_end(char c) noexcept {
  return c == '\r' || c == '\n';
}

bool has_line_end(std::string_view text) noexcept {
  for (const char c : text) {
    if (is_line_end(c)) return true;
  }
  return false;
}

// take_line takes a line off the front of `text`, with its end. `more` tells whether it had one: then another follows.
std::string_view take_line(std::string_view& text, bool& more) noexcept {
  std::size_t size = 0;
  while (size < text.size() && !is_line_end(text[size])) ++size;
  const std::string_view line = first(text, size);
  more = size < text.size();
  if (more) size += begins_with(after(text, size), "\r\n") ? 2 : 1;
  text.remove_prefix(size);
  return line;
}

}  // namespace

// At is the piece that is handed out next. The id is the first, so that its place is known.
enum class EventEncoder::At : std::uint8_t {
  id,
  id_value,
  id_end,
  type,
  type_value,
  type_end,
  retry,
  retry_value,
  retry_end,
  data,
  data_line,
  data_end,
  event_end,
  nothing
};

std::string_view EventEncoder::next() noexcept {
  for (;;) {
    const At at = at_;
    if (at != At::nothing) at_ = static_cast<At>(static_cast<std::uint8_t>(at) + 1);
    switch (at) {
      case At::id:
        if (event_.id.data() != nullptr) return "id: ";
        at_ = At::type;
        break;
      case At::id_value:
        if (!event_.id.empty()) return event_.id;
        break;
      case At::type:
        if (!event_.type.empty()) return "event: ";
        at_ = At::retry;
        break;
      case At::type_value:
        return event_.type;
      case At::retry:
        if (event_.retry_ms.has_value()) return "retry: ";
        at_ = At::data;
        break;
      case At::retry_value:
        return {digits_, write_decimal(digits_, *event_.retry_ms)};
      case At::data:
        if (event_.data.data() != nullptr) return "data: ";
        at_ = At::event_end;
        break;
      case At::data_line:
        if (const std::string_view line = take_line(data_, more_); !line.empty()) return line;
        break;
      case At::data_end:
        if (!more_) return "\n";
        at_ = At::data_line;
        return "\ndata: ";
      case At::id_end:
      case At::type_end:
      case At::retry_end:
      case At::event_end:
        return "\n";
      case At::nothing:
        return {};
    }
  }
}

bool is_event(const ServerEvent& event) noexcept {
  return !has_line_end(event.id) && event.id.find('\0') == std::string_view::npos && !has_line_end(event.type);
}

std::size_t encoded_bytes(const ServerEvent& event) noexcept {
  std::size_t bytes = 0;
  EventEncoder encoder(event);
  for (std::string_view piece = encoder.next(); !piece.empty(); piece = encoder.next()) bytes += piece.size();
  return bytes;
}

std::expected<std::string_view, Error> encode_event(const ServerEvent& event, std::span<char> out) noexcept {
  if (!is_event(event)) return std::unexpected(ErrorCode::invalid);
  Formatter written(out);
  EventEncoder encoder(event);
  for (std::string_view piece = encoder.next(); !piece.empty(); piece = encoder.next()) written.add(piece);
  if (!written.fits()) return std::unexpected(ErrorCode::limit);
  return written.text();
}

}  // namespace coir::http
