#pragma once

#include <coir/error.h>
#include <coir/http/wire/server_event.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string_view>

// Events and comments as bytes of text/event-stream. No input or output, no allocation.
namespace coir::http {

// kKeepAlive is a comment without text. It may stand wherever an event may begin.
inline constexpr std::string_view kKeepAlive = ":\n\n";

// kEventIdAt is where an encoded event's id begins, if it has one that is not empty.
inline constexpr std::size_t kEventIdAt = 4;

// is_event tells whether `event` can be sent: no NUL and no line end in its id, no line end in its type.
bool is_event(const ServerEvent& event) noexcept;

// EventEncoder hands out an event's bytes piece by piece, so that they can be written to whatever holds them.
//
//   EventEncoder encoder(event);
//   while (std::string_view piece = encoder.next(); !piece.empty()) append(piece);
//
// The event is one that is_event, and outlives the encoder. A piece is valid until the next is asked for.
class EventEncoder {
 public:
  explicit EventEncoder(const ServerEvent& event) noexcept : event_(event), data_(event.data) {}

  // next returns the next piece, and an empty view when there is none any more.
  std::string_view next() noexcept;

 private:
  enum class At : std::uint8_t;

  const ServerEvent& event_;
  std::string_view data_;  // lines that were not handed out yet
  bool more_ = false;      // there are such lines, be they empty
  At at_{};
  char digits_[10];
};

// encoded_bytes is how many bytes the event takes.
std::size_t encoded_bytes(const ServerEvent& event) noexcept;

// encode_event writes the event into `out` and returns what was written. Errors: invalid (not is_event), limit (`out`
// is too small).
std::expected<std::string_view, Error> encode_event(const ServerEvent& event, std::span<char> out) noexcept;

}  // namespace coir::http
