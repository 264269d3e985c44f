#include "http/message/head_error.h"

#include "http/text/characters.h"

namespace coir::http {
namespace {

constexpr std::uint16_t kBadRequest = 400;
constexpr std::uint16_t kEndsInLine = 414;
constexpr std::uint16_t kEndsInFields = 431;

// Each step takes its part of the head away and returns 0, or the status that ends the search.

std::uint16_t take_line_end(std::string_view& head, std::uint16_t when_short) {
  if (head.empty()) return when_short;
  if (head[0] != '\r') return kBadRequest;
  if (head.size() < 2) return when_short;
  if (head[1] != '\n') return kBadRequest;
  head.remove_prefix(2);
  return 0;
}

std::uint16_t take_method(std::string_view& head) {
  std::size_t at = 0;
  while (at < head.size() && is(head[at], kToken)) ++at;
  if (at == head.size()) return kEndsInLine;
  if (at == 0 || head[at] != ' ') return kBadRequest;
  head.remove_prefix(at + 1);
  return 0;
}

std::uint16_t take_target(std::string_view& head, std::size_t max_target) {
  std::size_t at = 0;
  for (; at < head.size() && head[at] != ' '; ++at) {
    if (at == max_target) return 414;
    const auto c = static_cast<unsigned char>(head[at]);
    if (c < 0x20 || c >= 0x7f) return kBadRequest;
  }
  if (at == head.size()) return kEndsInLine;
  if (at == 0) return kBadRequest;
  head.remove_prefix(at + 1);
  return 0;
}

std::uint16_t take_version(std::string_view& head) {
  constexpr std::string_view shape = "HTTP/0.0";
  for (std::size_t at = 0; at < shape.size(); ++at) {
    if (at == head.size()) return kEndsInLine;
    if (shape[at] == '0' ? !is_digit(head[at]) : head[at] != shape[at]) return kBadRequest;
  }
  if (head[5] != '1') return 505;
  head.remove_prefix(shape.size());
  return take_line_end(head, kEndsInLine);
}

std::uint16_t take_field(std::string_view& head) {
  std::size_t at = 0;
  while (at < head.size() && is(head[at], kToken)) ++at;
  if (at == head.size()) return kEndsInFields;
  if (at == 0 || head[at] != ':') return kBadRequest;
  while (at < head.size() && !is(head[at], kFieldControl)) ++at;
  head.remove_prefix(at);
  return take_line_end(head, kEndsInFields);
}

}  // namespace

std::uint16_t head_error(std::string_view head, const Limits& limits, std::size_t max_headers) noexcept {
  if (const auto status = take_method(head)) return status;
  if (const auto status = take_target(head, limits.max_target)) return status;
  if (const auto status = take_version(head)) return status;
  for (std::size_t fields = 0; !head.empty() && head[0] != '\r'; ++fields) {
    if (fields == max_headers && head[0] != '\n') return 431;
    if (const auto status = take_field(head)) return status;
  }
  if (head.size() > 1 && head[1] != '\n') return kBadRequest;
  return kEndsInFields;
}

bool asks_for_head(std::string_view bytes) noexcept {
  while (bytes.starts_with("\r\n")) bytes.remove_prefix(2);
  return bytes.starts_with("HEAD ");
}

}  // namespace coir::http
