#pragma once

#include <coir/http/wire/request.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "http/message/response_parser.h"

namespace coir::http {

// ScriptHead gathers the head that a script writes (RFC 3875, 6.3) in `memory`, as a head of HTTP: a status line in
// front, each line ended by CRLF, whatever the script ends it by.
class ScriptHead {
 public:
  ScriptHead() noexcept = default;
  explicit ScriptHead(std::span<char> memory) noexcept;

  enum class State : std::uint8_t { incomplete, whole, too_long };

  // take takes what belongs to the head off the front of `bytes`.
  State take(std::span<char>& bytes) noexcept;

  // move has the head go on in larger memory.
  void move(std::span<char> memory) noexcept;

  // parse reads the fields of a head that is whole. `response` then has the script's status: that of its Status field,
  // else 302 with a Location, else 200; and ContentEnd::length, close (its length is not said) or none. bad: no head
  // of a script's, or the status of an interim response.
  ResponseState parse(std::span<Header> fields, AnswerTo to, ParsedResponse& response) const noexcept;

 private:
  bool put(char byte) noexcept;

  std::span<char> memory_;
  std::size_t used_ = 0;
  bool line_empty_ = true;
  bool cr_ = false;
};

}  // namespace coir::http
