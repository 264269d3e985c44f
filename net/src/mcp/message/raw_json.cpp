#include "mcp/message/raw_json.h"

namespace coir::mcp::detail {

namespace {

bool is_space(char c) noexcept {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

void skip_space(std::string_view& text) noexcept {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
}

// value_bytes is how long the value at the front is: a text to its quote, a bracket to the one that closes it, anything
// else up to what cannot belong to it.
std::size_t value_bytes(std::string_view text) noexcept {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') {
        ++at;
      } else if (c == '"') {
        in_string = false;
        if (depth == 0) return at + 1;
      }
      continue;
    }
    if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (depth == 0) return at;
      if (--depth == 0) return at + 1;
    } else if (depth == 0 && (c == ',' || c == ':' || is_space(c))) {
      return at;
    }
  }
  return text.size();
}

std::string_view take_value(std::string_view& text) noexcept {
  skip_space(text);
  const std::string_view value = text.substr(0, value_bytes(text));
  text.remove_prefix(value.size());
  skip_space(text);
  return value;
}

void take(std::string_view& text, char separator) noexcept {
  if (!text.empty() && text.front() == separator) text.remove_prefix(1);
}

}  // namespace

std::string_view raw_inside(std::string_view value) noexcept {
  skip_space(value);
  while (!value.empty() && is_space(value.back())) value.remove_suffix(1);
  if (value.size() < 2) return {};
  value = value.substr(1, value.size() - 2);
  skip_space(value);
  while (!value.empty() && is_space(value.back())) value.remove_suffix(1);
  return value;
}

std::optional<RawMembers::Member> RawMembers::next() noexcept {
  const std::size_t before = left_.size();
  std::string_view name = take_value(left_);
  take(left_, ':');
  const std::string_view value = take_value(left_);
  take(left_, ',');
  // In text that is no JSON a piece may be empty; the walk must still end.
  if (left_.size() == before || name.size() < 2) return std::nullopt;
  return Member{name.substr(1, name.size() - 2), value};
}

std::optional<std::string_view> RawElements::next() noexcept {
  const std::size_t before = left_.size();
  const std::string_view value = take_value(left_);
  take(left_, ',');
  if (left_.size() == before || value.empty()) return std::nullopt;
  return value;
}

void blank_ends_of_lines(std::span<char> json) noexcept {
  for (char& each : json) {
    if (each == '\n' || each == '\r') each = ' ';
  }
}

std::string_view raw_member(std::string_view object, std::string_view name) noexcept {
  RawMembers members(object);
  while (const auto member = members.next()) {
    if (member->name == name) return member->value;
  }
  return {};
}

}  // namespace coir::mcp::detail
