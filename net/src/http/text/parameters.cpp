#include "http/text/parameters.h"

#include "http/text/characters.h"

namespace coir::http {
namespace {

bool is_quoted_pair(std::string_view text) noexcept {
  return text.size() > 1 && text[0] == '\\' && (text[1] == '"' || text[1] == '\\');
}

}  // namespace

std::optional<std::string_view> FieldParameter::value(std::span<char> out) const noexcept {
  if (!quoted || raw.find('\\') == std::string_view::npos) return raw;
  std::size_t size = 0;
  for (std::string_view rest = raw; !rest.empty(); rest.remove_prefix(1)) {
    if (is_quoted_pair(rest)) rest.remove_prefix(1);
    if (size == out.size()) return {};
    out[size++] = rest[0];
  }
  return std::string_view(out.data(), size);
}

std::optional<FieldParameter> FieldParameters::next() noexcept {
  std::string_view rest = trim(rest_);
  if (!rest.empty() && rest[0] != ';') return {};
  while (!rest.empty() && rest[0] == ';') rest = trim(after(rest, 1));
  if (rest.empty()) {
    rest_ = rest;
    return {};
  }
  const std::string_view name = until(rest, '=');
  if (name.size() == rest.size() || !is_token(name)) return {};
  rest.remove_prefix(name.size() + 1);
  const bool quoted = !rest.empty() && rest[0] == '"';
  std::size_t size = 0;
  if (quoted) {
    rest.remove_prefix(1);
    while (size < rest.size() && rest[size] != '"') size += is_quoted_pair(after(rest, size)) ? 2 : 1;
    if (size == rest.size()) return {};
  } else {
    while (size < rest.size() && is(rest[size], kToken)) ++size;
    if (size == 0) return {};
  }
  const FieldParameter parameter = {name, first(rest, size), quoted};
  rest_ = trim(after(rest, size + (quoted ? 1 : 0)));
  return parameter;
}

}  // namespace coir::http
