#include <coir/http/wire/date.h>
#include <coir/http/wire/representation.h>

#include "http/text/characters.h"

namespace coir::http {
namespace {

bool is_weak(std::string_view tag) noexcept {
  return begins_with(tag, "W/");
}

// take_tag reads one entity tag from the start of `list`; an empty view when there is none. Commas may stand inside a
// tag.
std::string_view take_tag(std::string_view& list) noexcept {
  std::size_t at = is_weak(list) ? 2 : 0;
  if (at >= list.size() || list[at] != '"') return {};
  for (++at; at < list.size() && list[at] != '"'; ++at) {
    const auto c = static_cast<unsigned char>(list[at]);
    if (c <= 0x20 || c == 0x7f) return {};
  }
  if (at == list.size()) return {};
  const std::string_view tag = first(list, at + 1);
  list.remove_prefix(at + 1);
  return tag;
}

bool same_tag(std::string_view a, std::string_view b, bool strong) noexcept {
  if (strong) return !is_weak(a) && a == b;
  if (is_weak(a)) a.remove_prefix(2);
  if (is_weak(b)) b.remove_prefix(2);
  return a == b;
}

bool field_matches(std::string_view value, const Validators& validators, bool strong) noexcept {
  if (value == "*") return validators.exists;
  return etag_list_matches(value, validators.etag, strong);
}

// any_line_matches looks at every line of a list field when there are several.
bool any_line_matches(const Request& request, std::string_view first, std::string_view name,
                      const Validators& validators, bool strong) noexcept {
  if (field_matches(first, validators, strong)) return true;
  if (!request.repeated) return false;
  for (const Header& line : request.headers) {
    if (equals_ignoring_case(line.name, name) && field_matches(line.value, validators, strong)) return true;
  }
  return false;
}

bool present(std::string_view field) noexcept {
  return field.data() != nullptr;
}

// if_range_holds: a part may be sent only when the client's other parts are surely of the same bytes, so the comparison
// is strong, and a date must be the very one (RFC 9110, 13.1.5).
bool if_range_holds(std::string_view value, const Validators& validators, std::int64_t now) noexcept {
  if (begins_with(value, "\"") || is_weak(value)) {
    std::string_view rest = value;
    return same_tag(take_tag(rest), validators.etag, true) && rest.empty();
  }
  const auto date = parse_date(value, now);
  return date && validators.has_modified && validators.stable && *date == validators.modified;
}

}  // namespace

PreconditionResult evaluate(const Request& request, const Validators& validators, std::int64_t now) noexcept {
  const bool reads = request.method == Method::get || request.method == Method::head;
  constexpr PreconditionResult failed = {.precondition = Precondition::failed};
  constexpr PreconditionResult not_modified = {.precondition = Precondition::not_modified};

  if (present(request.if_match)) {
    if (!any_line_matches(request, request.if_match, "if-match", validators, true)) return failed;
  } else if (present(request.if_unmodified_since) && validators.has_modified) {
    const auto date = parse_date(request.if_unmodified_since, now);
    if (date && validators.modified > *date) return failed;
  }
  if (present(request.if_none_match)) {
    if (any_line_matches(request, request.if_none_match, "if-none-match", validators, false)) {
      return reads ? not_modified : failed;
    }
  } else if (reads && present(request.if_modified_since) && validators.has_modified) {
    const auto date = parse_date(request.if_modified_since, now);
    if (date && validators.modified <= *date) return not_modified;
  }
  if (request.method != Method::get || !present(request.range)) return {};
  return {.range_applies = !present(request.if_range) || if_range_holds(request.if_range, validators, now)};
}

bool etag_list_matches(std::string_view list, std::string_view etag, bool strong) noexcept {
  bool matches = false;
  bool needs_comma = false;
  for (;;) {
    while (!list.empty() && (is_space(list[0]) || list[0] == ',')) {
      needs_comma = needs_comma && list[0] != ',';
      list.remove_prefix(1);
    }
    if (list.empty()) return matches;
    if (needs_comma) return false;
    const std::string_view tag = take_tag(list);
    if (tag.empty()) return false;
    matches = matches || same_tag(tag, etag, strong);
    needs_comma = true;
  }
}

ETag make_etag(std::int64_t mtime_ns, std::uint64_t size, std::int64_t now_ns, char form) noexcept {
  ETag tag;
  char* at = tag.text_;
  const auto hex = [&](std::uint64_t number) {
    int shift = 60;
    while (shift > 0 && (number >> shift) == 0) shift -= 4;
    for (; shift >= 0; shift -= 4) *at++ = "0123456789abcdef"[(number >> shift) & 15];
  };
  const bool stable = mtime_ns <= now_ns - kStableNs;
  if (!stable) {
    *at++ = 'W';
    *at++ = '/';
  }
  *at++ = '"';
  hex(static_cast<std::uint64_t>(mtime_ns));
  *at++ = '-';
  hex(size);
  if (form != '\0') {
    *at++ = '-';
    *at++ = form;
  }
  *at++ = '"';
  tag.size_ = static_cast<std::uint8_t>(at - tag.text_);
  return tag;
}

}  // namespace coir::http
