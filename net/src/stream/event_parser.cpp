#include "stream/event_parser.h"

#include <algorithm>
#include <cstring>

#include "http/text/characters.h"

namespace coir::http {
namespace {

constexpr std::string_view kMark = "\xef\xbb\xbf";         // U+FEFF
constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

std::size_t line_size(std::string_view bytes) noexcept {
  std::size_t size = 0;
  while (size < bytes.size() && bytes[size] != '\r' && bytes[size] != '\n') ++size;
  return size;
}

}  // namespace

ParsedEvent EventParser::parse(std::string_view& bytes, std::span<char> buffer, std::size_t max_line) noexcept {
  if (told_) end_event(buffer);
  if (!failed_ && mark_ < kMark.size()) failed_ = !take_mark(bytes, buffer);
  while (!failed_ && !bytes.empty()) {
    if (after_cr_) {
      after_cr_ = false;
      if (bytes.front() == '\n') {
        bytes.remove_prefix(1);
        continue;
      }
    }
    const std::size_t size = line_size(bytes);
    failed_ = !take_text(first(bytes, size), buffer, max_line);
    bytes.remove_prefix(size);
    if (failed_ || bytes.empty()) break;
    after_cr_ = bytes.front() == '\r';
    bytes.remove_prefix(1);
    failed_ = !end_line(buffer);
    if (!told_) continue;
    const char* const at = buffer.data() + last_id_;
    return {EventState::event,
            {.data = {at, data_ - std::size_t{1}},
             .type = {buffer.data() + buffer.size() - type_, type_},
             .id = last_id(buffer)}};
  }
  return {failed_ ? EventState::limit : EventState::more, {}};
}

// take_mark drops a byte order mark. Bytes that only began like one are text.
bool EventParser::take_mark(std::string_view& bytes, std::span<char> buffer) noexcept {
  while (mark_ < kMark.size() && !bytes.empty()) {
    if (bytes.front() != kMark[mark_]) {
      raw_ = mark_;
      mark_ = static_cast<std::uint8_t>(kMark.size());
      return put(first(kMark, raw_), buffer);
    }
    ++mark_;
    bytes.remove_prefix(1);
  }
  return true;
}

// take_text goes on with the line.
bool EventParser::take_text(std::string_view text, std::span<char> buffer, std::size_t max_line) noexcept {
  if (text.empty()) return true;
  if (raw_ == 0) comment_ = text.front() == ':';
  // Nothing of a comment is kept, however long it is.
  if (comment_) return raw_ = 1, true;
  if (text.size() > UINT32_MAX - raw_ || raw_ + text.size() > max_line) return false;
  raw_ += static_cast<std::uint32_t>(text.size());
  return put(text, buffer);
}

// put adds text to the line, mended.
bool EventParser::put(std::string_view text, std::span<char> buffer) noexcept {
  for (;;) {
    const std::size_t good = utf8_.accept(text);
    if (!keep(first(text, good), buffer)) return false;
    if (good == text.size()) return true;
    // The byte after a character that was cut off may begin one.
    text.remove_prefix(utf8_.pending() != 0 ? good : good + 1);
    if (!replace(buffer)) return false;
  }
}

// replace puts U+FFFD in the place of what there is of a character.
bool EventParser::replace(std::span<char> buffer) noexcept {
  line_ -= static_cast<std::uint32_t>(utf8_.pending());
  utf8_.reset();
  return keep(kReplacement, buffer);
}

bool EventParser::keep(std::string_view text, std::span<char> buffer) noexcept {
  if (text.empty()) return true;
  const std::size_t at = line_at() + line_;
  if (text.size() > buffer.size() - type_ - id_ - at) return false;
  std::memcpy(buffer.data() + at, text.data(), text.size());
  line_ += static_cast<std::uint32_t>(text.size());
  return true;
}

bool EventParser::end_line(std::span<char> buffer) noexcept {
  const bool empty = raw_ == 0;
  raw_ = 0;
  if (empty) {
    told_ = data_ != 0;
    if (!told_) end_event(buffer);
    return true;
  }
  if (comment_) return true;
  if (!utf8_.complete() && !replace(buffer)) return false;
  const bool taken = take_field({buffer.data() + line_at(), line_}, buffer);
  line_ = 0;
  return taken;
}

bool EventParser::take_field(std::string_view line, std::span<char> buffer) noexcept {
  const std::string_view name = until(line, ':');
  std::string_view value = after(line, std::min(name.size() + 1, line.size()));
  if (begins_with(value, " ")) value.remove_prefix(1);
  if (name == "data") {
    // The name alone is longer than the LF.
    char* const at = buffer.data() + line_at();
    std::memmove(at, value.data(), value.size());
    at[value.size()] = '\n';
    data_ += static_cast<std::uint32_t>(value.size()) + 1;
  } else if (name == "event") {
    return set_type(value, buffer);
  } else if (name == "id") {
    return value.find('\0') != std::string_view::npos || set_id(value, buffer);
  } else if (name == "retry") {
    set_retry(value);
  }
  return true;
}

// set_type and set_id copy a value out of the line to the buffer's end, where it may not meet the line.
bool EventParser::set_type(std::string_view value, std::span<char> buffer) noexcept {
  if (value.size() > buffer.size() - id_ - line_at() - line_) return false;
  char* const end = buffer.data() + buffer.size();
  std::memmove(end - value.size() - id_, end - type_ - id_, id_);
  std::memcpy(end - value.size(), value.data(), value.size());
  type_ = static_cast<std::uint32_t>(value.size());
  return true;
}

bool EventParser::set_id(std::string_view value, std::span<char> buffer) noexcept {
  if (value.size() > buffer.size() - type_ - line_at() - line_) return false;
  std::memcpy(buffer.data() + buffer.size() - type_ - value.size(), value.data(), value.size());
  id_ = static_cast<std::uint32_t>(value.size());
  has_id_ = true;
  return true;
}

// set_retry takes digits only; a number too large for it counts as the largest.
void EventParser::set_retry(std::string_view value) noexcept {
  std::uint64_t number = 0;
  for (const char c : value) {
    if (!is_digit(c)) return;
    number = std::min<std::uint64_t>(number * 10 + static_cast<unsigned>(c - '0'), UINT32_MAX);
  }
  if (value.empty()) return;
  retry_ = static_cast<std::uint32_t>(number);
  has_retry_ = true;
}

// end_event brings the event's id into force and forgets the rest of it. No line has begun.
void EventParser::end_event(std::span<char> buffer) noexcept {
  if (has_id_) {
    std::memmove(buffer.data(), buffer.data() + buffer.size() - type_ - id_, id_);
    last_id_ = id_;
  }
  data_ = type_ = id_ = 0;
  has_id_ = told_ = false;
}

std::string_view EventParser::last_id(std::span<const char> buffer) const noexcept {
  if (told_ && has_id_) return {buffer.data() + buffer.size() - type_ - id_, id_};
  return {buffer.data(), last_id_};
}

bool EventParser::set_last_id(std::string_view id, std::span<char> buffer) noexcept {
  if (id.size() > buffer.size()) return false;
  if (!id.empty()) std::memcpy(buffer.data(), id.data(), id.size());
  last_id_ = static_cast<std::uint32_t>(id.size());
  return true;
}

std::optional<std::uint32_t> EventParser::retry_ms() const noexcept {
  return has_retry_ ? std::optional(retry_) : std::nullopt;
}

void EventParser::move(std::span<const char> from, std::span<char> to) const noexcept {
  const std::size_t front = line_at() + line_, back = std::size_t{id_} + type_;
  if (front != 0) std::memcpy(to.data(), from.data(), front);
  if (back != 0) std::memcpy(to.data() + to.size() - back, from.data() + from.size() - back, back);
}

void EventParser::restart(std::span<char> buffer) noexcept {
  if (told_) end_event(buffer);
  EventParser fresh;
  fresh.last_id_ = last_id_;
  fresh.retry_ = retry_;
  fresh.has_retry_ = has_retry_;
  *this = fresh;
}

}  // namespace coir::http
