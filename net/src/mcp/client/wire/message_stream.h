#pragma once

#include <coir/error.h>
#include <coir/http/client.h>

#include <cstddef>
#include <expected>
#include <optional>
#include <string_view>

#include "base/buffer_pool.h"
#include "mcp/message/raw_json.h"
#include "stream/event_parser.h"

namespace coir::mcp::detail {

// MessageStream takes the messages out of an HTTP response, whether it is one JSON text, a batch of them, or a stream of
// events.
class MessageStream {
 public:
  explicit MessageStream(std::size_t most) noexcept : most_(most) {}

  // begin reads from another response from here on; the last event's id stays. Errors: protocol (of another type).
  [[nodiscard]] std::expected<void, Error> begin(http::Response&& response) noexcept;

  // next waits for the next message and returns its text, valid until the next call. Errors: end_of_stream (there are no
  // more), limit (longer than `most`); those of Response::read.
  [[nodiscard]] std::expected<std::string_view, Error> next() noexcept;

  // drain reads the end that is there already, so that the connection can be kept.
  void drain() noexcept;
  void end() noexcept { response_ = http::Response(); }

  // last_id is where the stream can be resumed, empty: nowhere. retry_ms is how long its server wants to be waited for.
  std::string_view last_id() const noexcept { return parser_.last_id(kept_.bytes()); }
  std::optional<std::uint32_t> retry_ms() const noexcept { return parser_.retry_ms(); }
  bool of_events() const noexcept { return events_; }
  const http::Response& response() const noexcept { return response_; }

 private:
  std::expected<std::string_view, Error> next_text() noexcept;
  std::expected<std::string_view, Error> whole_text() noexcept;
  std::expected<std::string_view, Error> next_event() noexcept;
  std::expected<void, Error> make_room(std::size_t bytes) noexcept;

  static constexpr std::size_t kInput = 1024;

  const std::size_t most_;
  http::Response response_;
  http::EventParser parser_;
  Buffer kept_;                       // of the parser; or the whole JSON text
  std::string_view unread_;           // of input_
  std::optional<RawElements> batch_;  // the rest of one
  bool events_ = false;
  bool ended_ = false;
  char input_[kInput];
};

}  // namespace coir::mcp::detail
