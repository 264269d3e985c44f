#include <coir/http/detail/multipart_parser.h>
#include <string.h>

#include "http/text/characters.h"
#include "http/text/parameters.h"

namespace coir::http::detail {
namespace {

// may_bound tells whether a boundary may hold `c` (RFC 2046, 5.1.1).
constexpr bool may_bound(char c) noexcept {
  if (is(c, kToken)) return std::string_view("!#$%&*^`|~").find(c) == std::string_view::npos;
  return std::string_view("(),/:=? ").find(c) != std::string_view::npos;
}

}  // namespace

MultipartParser::Event MultipartParser::next() noexcept {
  content_ = {};
  switch (at_) {
    case At::preamble:
      return preamble();
    case At::content:
      return content_piece();
    case At::boundary:
      return boundary();
    case At::header:
      return header();
    case At::epilogue:
      return epilogue();
    case At::end:
      return Event::end;
    case At::bad:
      break;
  }
  return Event::bad;
}

// before_delimiter is how much of what is unread cannot be the beginning of the boundary.
std::size_t MultipartParser::before_delimiter() const noexcept {
  const std::string_view text = unread();
  for (std::size_t size = 0;; ++size) {
    const void* const found = size < text.size() ? memchr(text.data() + size, '\r', text.size() - size) : nullptr;
    if (found == nullptr) return text.size();
    size = static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
    if (memcmp(found, delimiter_, std::min(text.size() - size, delimiter().size())) == 0) return size;
  }
}

// preamble drops what stands before the first boundary (RFC 2046, 5.1.1).
MultipartParser::Event MultipartParser::preamble() noexcept {
  begin_ += before_delimiter();
  if (unread().size() < delimiter().size()) return wants_more();
  at_ = At::boundary;
  return boundary();
}

// content_piece hands over what cannot be the beginning of the boundary.
MultipartParser::Event MultipartParser::content_piece() noexcept {
  const std::string_view text = unread();
  const std::size_t size = before_delimiter();
  if (size == 0 && text.size() >= delimiter().size()) {
    at_ = At::boundary;
    return boundary();
  }
  if (size == 0) return wants_more();
  if (size > limits_.max_part_bytes - part_bytes_) return bad(413);
  part_bytes_ += size;
  content_ = first(text, size);
  begin_ += size;
  return Event::content;
}

// boundary reads the boundary and what ends its line: CRLF, or two hyphens when it is the last.
MultipartParser::Event MultipartParser::boundary() noexcept {
  const std::string_view text = unread();
  const std::size_t compared = std::min(text.size(), delimiter().size());
  if (memcmp(text.data(), delimiter_, compared) != 0) return bad(400);
  const std::string_view end = after(text, compared);
  const bool last = begins_with(end, "--");
  if (end.size() < 2) {
    if (!end.empty() && end[0] != '-' && end[0] != '\r') return bad(400);
    return wants_more();
  }
  if (!last && !begins_with(end, "\r\n")) return bad(400);
  begin_ += compared + 2;
  at_ = last ? At::epilogue : At::header;
  seen_ = 0;
  if (!in_part_) return next();
  in_part_ = false;
  kept_ = 0;
  return Event::part_end;
}

MultipartParser::Event MultipartParser::header() noexcept {
  const std::string_view text = unread();
  // The end is an empty line; three bytes of it may have been there before.
  const std::size_t from = seen_ - std::min<std::size_t>(seen_, 3);
  const std::size_t found = text.find("\r\n\r\n", from);
  const std::size_t size = found == std::string_view::npos ? text.size() : found + 4;
  if (begins_with(text, "\r\n")) return bad(400);
  if (size > limits_.max_header_bytes) return bad(413);
  if (found == std::string_view::npos) {
    seen_ = text.size();
    return wants_more();
  }
  if (++parts_ > limits_.max_parts) return bad(413);
  memmove(memory_.data(), text.data(), size);
  begin_ += size;
  kept_ = size;
  part_ = {};
  if (const std::uint16_t status = read_fields(memory_.first(size - 2))) return bad(status);
  in_part_ = true;
  part_bytes_ = 0;
  at_ = At::content;
  return Event::part;
}

// epilogue drops what follows the last boundary, which has to be a line of its own.
MultipartParser::Event MultipartParser::epilogue() noexcept {
  const std::string_view text = unread();
  if (seen_ == 0 && !text.empty()) {
    if (!begins_with("\r\n", first(text, std::min<std::size_t>(text.size(), 2)))) return bad(400);
    if (text.size() < 2) return wants_more();
    seen_ = 1;
  }
  begin_ = end_;
  if (!ended_) return Event::more;
  at_ = At::end;
  return Event::end;
}

MultipartParser::Event MultipartParser::bad(std::uint16_t status) noexcept {
  at_ = At::bad;
  status_ = status;
  return Event::bad;
}

std::span<char> MultipartParser::room() noexcept {
  if (begin_ > kept_) {
    memmove(memory_.data() + kept_, memory_.data() + begin_, end_ - begin_);
    end_ -= begin_ - kept_;
    begin_ = kept_;
  }
  return memory_.subspan(end_);
}

std::uint16_t MultipartParser::begin(std::string_view content_type) noexcept {
  if (!equals_ignoring_case(trim(until(content_type, ';')), "multipart/form-data")) return 415;
  char value[70];  // more is too long
  std::string_view boundary{};
  FieldParameters parameters(after(content_type, until(content_type, ';').size()));
  while (const auto parameter = parameters.next()) {
    if (!equals_ignoring_case(parameter->name, "boundary")) continue;
    const auto given = parameter->value(value);
    if (boundary.data() != nullptr || !given || given->size() > sizeof value) return 400;
    boundary = *given;
  }
  if (!parameters.whole() || boundary.empty() || boundary.back() == ' ') return 400;
  if (!std::ranges::all_of(boundary, may_bound)) return 400;
  memcpy(delimiter_, "\r\n--", 4);
  memcpy(delimiter_ + 4, boundary.data(), boundary.size());
  delimiter_size_ = static_cast<std::uint8_t>(4 + boundary.size());
  // The first boundary may have no line before it; as if it had, it is found like the others.
  memcpy(memory_.data(), "\r\n", 2);
  end_ = 2;
  return 0;
}

}  // namespace coir::http::detail
