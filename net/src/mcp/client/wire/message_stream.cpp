#include "mcp/client/wire/message_stream.h"

#include <coir/cancel_scope.h>

#include <algorithm>

#include "http/text/characters.h"

namespace coir::mcp::detail {

namespace {

// A parser mends what is no UTF-8, which takes three bytes for one.
constexpr std::size_t kMended = 3;
constexpr std::size_t kSlack = 64;

bool is_type(const http::Response& response, std::string_view type) noexcept {
  return http::equals_ignoring_case(http::trim(http::until(response.header("Content-Type"), ';')), type);
}

}  // namespace

std::expected<void, Error> MessageStream::begin(http::Response&& response) noexcept {
  response_ = std::move(response);
  unread_ = {};
  batch_.reset();
  ended_ = false;
  if (is_type(response_, "text/event-stream")) {
    if (!kept_) {
      auto taken = Buffer::take(Buffer::kLeast);
      if (!taken) return std::unexpected(taken.error());
      kept_ = std::move(*taken);
    }
    parser_.restart(kept_.bytes());
    events_ = true;
    return {};
  }
  events_ = false;
  if (is_type(response_, "application/json")) return {};
  return std::unexpected(Error{ErrorCode::protocol});
}

std::expected<std::string_view, Error> MessageStream::next() noexcept {
  for (;;) {
    if (batch_) {
      if (const auto element = batch_->next()) return *element;
      batch_.reset();
    }
    const auto text = next_text();
    if (!text || !http::trim(*text).starts_with('[')) return text;
    batch_.emplace(*text);
  }
}

std::expected<std::string_view, Error> MessageStream::next_text() noexcept {
  if (events_) return next_event();
  if (ended_) return std::unexpected(Error{ErrorCode::end_of_stream});
  ended_ = true;
  return whole_text();
}

std::expected<std::string_view, Error> MessageStream::whole_text() noexcept {
  std::size_t used = 0;
  for (;;) {
    if (used == kept_.size()) {
      if (used > most_) return std::unexpected(Error{ErrorCode::limit});
      if (!kept_) {
        // A byte more than comes, so that the end is seen.
        const std::uint64_t told = response_.content_length().value_or(0);
        auto taken = Buffer::take(static_cast<std::size_t>(std::min<std::uint64_t>(told, most_)) + 1);
        if (!taken) return std::unexpected(taken.error());
        kept_ = std::move(*taken);
      } else if (auto grown = kept_.grow(used); !grown) {
        return std::unexpected(grown.error());
      }
    }
    const auto got = response_.read(kept_.bytes().subspan(used));
    if (got) {
      used += *got;
    } else if (got.error() == ErrorCode::end_of_stream) {
      break;
    } else {
      return std::unexpected(got.error());
    }
  }
  if (used > most_) return std::unexpected(Error{ErrorCode::limit});
  return std::string_view(kept_.data(), used);
}

// make_room moves what the parser keeps into a buffer that has room for `bytes` more, and into a small one again when a
// large message has gone.
std::expected<void, Error> MessageStream::make_room(std::size_t bytes) noexcept {
  const std::size_t wanted = parser_.kept_bytes() + kMended * bytes + kSlack;
  const bool too_large = kept_.size() > 4 * Buffer::kLeast && wanted <= Buffer::kLeast;
  if (wanted <= kept_.size() && !too_large) return {};
  // The parser reports a message that is longer than any buffer.
  const std::size_t size = std::min(wanted, Buffer::kMost);
  if (size <= kept_.size() && !too_large) return {};
  auto taken = Buffer::take(size);
  if (!taken) return std::unexpected(taken.error());
  parser_.move(kept_.bytes(), taken->bytes());
  kept_ = std::move(*taken);
  return {};
}

std::expected<std::string_view, Error> MessageStream::next_event() noexcept {
  for (;;) {
    const http::ParsedEvent parsed = parser_.parse(unread_, kept_.bytes(), most_ + kSlack);
    if (parsed.state == http::EventState::limit) return std::unexpected(Error{ErrorCode::limit});
    if (parsed.state == http::EventState::event) {
      if (parsed.event.data.size() > most_) return std::unexpected(Error{ErrorCode::limit});
      // The first event of a resumable stream has an id and no data.
      if (!http::trim(parsed.event.data).empty()) return parsed.event.data;
      continue;
    }
    const auto got = response_.read(input_);
    if (!got) return std::unexpected(got.error());
    unread_ = {input_, *got};
    if (auto room = make_room(*got); !room) return std::unexpected(room.error());
  }
}

void MessageStream::drain() noexcept {
  using namespace std::chrono_literals;
  CancelScope briefly(Deadline::after(5ms));
  for (int reads = 0; reads < 4; ++reads) {
    if (!response_.read(input_)) break;
  }
  end();
}

}  // namespace coir::mcp::detail
