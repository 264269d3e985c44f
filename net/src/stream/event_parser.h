#pragma once

#include <coir/http/wire/server_event.h>
#include <coir/utf8.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace coir::http {

enum class EventState : std::uint8_t { more, event, limit };

// ParsedEvent: with `event`, `event` is there, and valid until the parser is used again. With `limit` a line or an
// event is over its ceiling, and the stream cannot be read on.
struct ParsedEvent {
  EventState state = EventState::more;
  ServerEvent event;
};

// EventParser makes events of the bytes of a stream (WHATWG HTML, 9.2.6), in whatever pieces they arrive. The bytes
// that it has to keep lie in the caller's buffer:
//
//   | last id in force | data so far | line so far |   free   | id of this event | its type |
//
// So the buffer's size is the ceiling for an event, ids and the longest line included. Text is mended as it is kept:
// what is not UTF-8 becomes U+FFFD as the Encoding Standard says. A byte order mark at the start of the stream is
// dropped. An event that the stream ends in the middle of is none. How the bytes are cut changes nothing.
//
//   EventParser parser;
//   for (;;) {
//     read; std::string_view bytes = what was read ...
//     while ((parsed = parser.parse(bytes, buffer, kMostLine)).state == EventState::event) tell(parsed.event);
//     if (parsed.state == EventState::limit) give up
//   }
//   parser.restart(buffer);   // then connect anew, with Last-Event-ID: parser.last_id(buffer)
//
// 40 bytes of state; no allocation.
class EventParser {
 public:
  // parse takes bytes off the front of `bytes` up to the end of an event, or all. `buffer` is the same, with its
  // content untouched, as long as the parser is used, and at most 2^32 - 1 bytes. `max_line` is the ceiling for a line,
  // unknown fields included, which need no room in the buffer for long. A comment needs none and may have any length.
  [[nodiscard]] ParsedEvent parse(std::string_view& bytes, std::span<char> buffer, std::size_t max_line) noexcept;

  // last_id is the id to resume behind: of the latest event that came to its end, with data or without. Empty: none.
  std::string_view last_id(std::span<const char> buffer) const noexcept;

  // set_last_id is for a program that knows the id from before; to be called before any byte of a stream was parsed.
  // False: it does not fit.
  bool set_last_id(std::string_view id, std::span<char> buffer) noexcept;

  // retry_ms is how long the stream wants to be waited for before it is connected to anew, if it said so. It holds from
  // the end of its line on, across streams.
  std::optional<std::uint32_t> retry_ms() const noexcept;

  // kept_bytes is how much of the buffer is in use; move takes what is there into another buffer, which is used from then
  // on and holds it.
  std::size_t kept_bytes() const noexcept { return line_at() + line_ + id_ + type_; }
  void move(std::span<const char> from, std::span<char> to) const noexcept;

  // restart makes ready for another stream: an unfinished event is dropped, the last id and the retry stay.
  void restart(std::span<char> buffer) noexcept;

 private:
  bool take_mark(std::string_view& bytes, std::span<char> buffer) noexcept;
  bool take_text(std::string_view text, std::span<char> buffer, std::size_t max_line) noexcept;
  bool put(std::string_view text, std::span<char> buffer) noexcept;
  bool keep(std::string_view text, std::span<char> buffer) noexcept;
  bool replace(std::span<char> buffer) noexcept;
  bool end_line(std::span<char> buffer) noexcept;
  bool take_field(std::string_view line, std::span<char> buffer) noexcept;
  bool set_type(std::string_view value, std::span<char> buffer) noexcept;
  bool set_id(std::string_view value, std::span<char> buffer) noexcept;
  void set_retry(std::string_view value) noexcept;
  void end_event(std::span<char> buffer) noexcept;
  std::size_t line_at() const noexcept { return std::size_t{last_id_} + data_; }

  // Sizes of what lies in the buffer.
  std::uint32_t last_id_ = 0;
  std::uint32_t data_ = 0;  // each line with LF behind it
  std::uint32_t line_ = 0;
  std::uint32_t id_ = 0;
  std::uint32_t type_ = 0;

  std::uint32_t raw_ = 0;  // of the line, as it was received
  std::uint32_t retry_ = 0;
  Utf8Checker utf8_;
  std::uint8_t mark_ = 0;  // bytes of a byte order mark that were read; 3 once there can be none any more
  bool has_id_ = false;    // this event has an id of its own
  bool has_retry_ = false;
  bool comment_ = false;   // the line is one
  bool after_cr_ = false;  // LF here belongs to the line end before
  bool told_ = false;      // the event was returned and goes at the next call
  bool failed_ = false;
};

}  // namespace coir::http
