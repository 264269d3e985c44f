#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

// How the patterns of coir/http/routes.h are read, checked and compared: while compiling, and when a path is matched.
namespace coir::http::detail {

enum class SegmentKind : std::uint8_t { literal, one, rest };

// PatternSegment is what stands between two slashes: text, "{name}" or "{name...}". `text` is the text or the name.
struct PatternSegment {
  SegmentKind kind;
  std::string_view text;
};

constexpr std::string_view take_segment(std::string_view& path) noexcept {
  std::size_t end = 1;
  while (end < path.size() && path[end] != '/') ++end;
  const std::string_view text(path.data() + 1, end - 1);
  path.remove_prefix(end);
  return text;
}

// take_pattern_segment takes the first segment of `pattern`, with the slash before it, away.
constexpr PatternSegment take_pattern_segment(std::string_view& pattern) noexcept {
  const std::string_view text = take_segment(pattern);
  if (text.empty() || text.front() != '{') return {SegmentKind::literal, text};
  const bool rest = text.size() > 5 && text.ends_with("...}");
  return {rest ? SegmentKind::rest : SegmentKind::one, {text.data() + 1, text.size() - (rest ? 5 : 2)}};
}

// These are declared and nowhere defined: a call of one while compiling is the error, and its name the message.
void a_pattern_begins_with_a_slash();
void a_pattern_is_written_decoded_and_without_a_query();
void a_pattern_has_no_empty_segment_but_its_last();
void a_pattern_has_no_dot_segments();
void a_parameter_is_a_whole_segment_with_a_name_of_letters_digits_and_underscores();
void two_parameters_have_the_same_name();
void only_the_last_segment_takes_the_rest();
void a_pattern_has_eight_parameters_at_most();
void the_handler_takes_another_number_of_parameters();
void two_routes_answer_the_same_request();

inline constexpr std::size_t kMostParameters = 8;

consteval bool is_parameter_name(std::string_view name) {
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!letter && !(c >= '0' && c <= '9') && c != '_') return false;
  }
  return !name.empty();
}

consteval void check_parameter(std::string_view segment, std::string_view before, std::string_view rest) {
  std::string_view alone(segment.data() - 1, segment.size() + 1);
  const PatternSegment parameter = take_pattern_segment(alone);
  if (segment.front() != '{' || segment.back() != '}' || !is_parameter_name(parameter.text)) {
    a_parameter_is_a_whole_segment_with_a_name_of_letters_digits_and_underscores();
  }
  if (parameter.kind == SegmentKind::rest && !rest.empty()) only_the_last_segment_takes_the_rest();
  while (!before.empty()) {
    const PatternSegment earlier = take_pattern_segment(before);
    if (earlier.kind != SegmentKind::literal && earlier.text == parameter.text) two_parameters_have_the_same_name();
  }
}

// check_pattern stops the compilation for a bad pattern, and returns how many parameters a good one has.
consteval std::size_t check_pattern(std::string_view pattern) {
  if (pattern.empty() || pattern.front() != '/') a_pattern_begins_with_a_slash();
  std::size_t parameters = 0;
  for (const char c : pattern) {
    const bool control = static_cast<unsigned char>(c) <= ' ' || c == 0x7f;
    if (control || c == '%' || c == '?' || c == '#') a_pattern_is_written_decoded_and_without_a_query();
  }
  for (std::string_view rest = pattern; !rest.empty();) {
    const std::string_view before(pattern.data(), pattern.size() - rest.size());
    const std::string_view segment = take_segment(rest);
    if (segment.empty() && !rest.empty()) a_pattern_has_no_empty_segment_but_its_last();
    if (segment == "." || segment == "..") a_pattern_has_no_dot_segments();
    bool braces = false;
    for (const char c : segment) braces = braces || c == '{' || c == '}';
    if (!braces) continue;
    check_parameter(segment, before, rest);
    ++parameters;
  }
  if (parameters > kMostParameters) a_pattern_has_eight_parameters_at_most();
  return parameters;
}

// comes_before orders patterns so that of two that fit a path the more special one comes first: text before "{name}"
// before "{name...}", segment by segment.
consteval bool comes_before(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    const PatternSegment x = take_pattern_segment(a);
    const PatternSegment y = take_pattern_segment(b);
    if (x.kind != y.kind) return x.kind < y.kind;
    if (x.kind == SegmentKind::literal && x.text != y.text) return x.text < y.text;
  }
  return a.empty() && !b.empty();
}

// conflict tells whether some path fits both patterns, and neither is more special than the other.
consteval bool conflict(std::string_view a, std::string_view b) {
  bool first = false;
  bool second = false;
  while (!a.empty() && !b.empty()) {
    const PatternSegment x = take_pattern_segment(a);
    const PatternSegment y = take_pattern_segment(b);
    if (x.kind == y.kind) {
      if (x.kind == SegmentKind::literal && x.text != y.text) return false;
      continue;
    }
    (x.kind < y.kind ? first : second) = true;
    // The rest fits whatever the other has still to come; a parameter is not empty.
    if (x.kind == SegmentKind::rest || y.kind == SegmentKind::rest) return first == second;
    if (x.text.empty() || y.text.empty()) return false;
  }
  return a.empty() && b.empty() && first == second;
}

}  // namespace coir::http::detail
