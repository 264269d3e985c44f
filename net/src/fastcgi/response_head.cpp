#include "fastcgi/response_head.h"

#include <string.h>

#include "http/text/characters.h"

namespace coir::http {
namespace {

constexpr std::string_view kStatusLine = "HTTP/1.1 200 OK\r\n";

// status_of reads "404" or "404 Not Found"; 0: it is neither.
int status_said(std::string_view text) noexcept {
  if (text.size() < 3 || (text.size() > 3 && text[3] != ' ')) return 0;
  int status = 0;
  for (const char digit : text.substr(0, 3)) {
    if (digit < '0' || digit > '9') return 0;
    status = status * 10 + (digit - '0');
  }
  return status >= 200 && status <= 599 ? status : 0;
}

}  // namespace

ScriptHead::ScriptHead(std::span<char> memory) noexcept : memory_(memory), used_(kStatusLine.size()) {
  memcpy(memory.data(), kStatusLine.data(), kStatusLine.size());
}

void ScriptHead::move(std::span<char> memory) noexcept {
  memcpy(memory.data(), memory_.data(), used_);
  memory_ = memory;
}

bool ScriptHead::put(char byte) noexcept {
  if (used_ == memory_.size()) return false;
  memory_[used_++] = byte;
  return true;
}

ScriptHead::State ScriptHead::take(std::span<char>& bytes) noexcept {
  while (!bytes.empty()) {
    const char byte = bytes.front();
    // A line's end is put whole, or not at all: the caller comes again with larger memory.
    if (memory_.size() - used_ < 2) return State::too_long;
    bytes = bytes.subspan(1);
    if (byte == '\n' && !cr_) static_cast<void>(put('\r'));
    static_cast<void>(put(byte));
    cr_ = byte == '\r';
    if (byte == '\n') {
      if (line_empty_) return State::whole;
      line_empty_ = true;
    } else if (!cr_) {
      line_empty_ = false;
    }
  }
  return State::incomplete;
}

ResponseState ScriptHead::parse(std::span<Header> fields, AnswerTo to, ParsedResponse& response) const noexcept {
  const ResponseResult parsed = parse_response({memory_.data(), used_}, 0, fields, to, response);
  if (parsed.state == ResponseState::too_many_fields) return parsed.state;
  if (parsed.state != ResponseState::complete || response.headers.empty()) return ResponseState::bad;
  int status = 200;
  const std::string_view said = response.header("Status");
  if (said.data() != nullptr) {
    status = status_said(trim(said));
  } else if (!response.header("Location").empty()) {
    status = 302;
  }
  if (status == 0) return ResponseState::bad;
  response.status = static_cast<std::uint16_t>(status);
  // A record frames: a coding that the script names is none.
  if (response.end == ContentEnd::chunked) response.end = ContentEnd::close;
  if (status == 204 || status == 304) response.end = ContentEnd::none;
  return ResponseState::complete;
}

}  // namespace coir::http
