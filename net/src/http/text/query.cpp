#include <coir/http/wire/query.h>

#include "http/text/characters.h"

namespace coir::http {
namespace {

bool is_called(std::string_view encoded, std::string_view name) noexcept {
  for (const char c : name) {
    if (encoded.empty() || take_form_decoded(encoded) != static_cast<unsigned char>(c)) return false;
  }
  return encoded.empty();
}

}  // namespace

std::optional<QueryPair> QueryPairs::next() noexcept {
  while (!rest_.empty()) {
    const std::string_view pair = until(rest_, '&');
    rest_.remove_prefix(std::min(pair.size() + 1, rest_.size()));
    if (pair.empty()) continue;
    const std::string_view name = until(pair, '=');
    if (name.size() == pair.size()) return QueryPair{name, {}};
    return QueryPair{name, after(pair, name.size() + 1)};
  }
  return {};
}

std::string_view query_encoded(std::string_view query, std::string_view name) noexcept {
  QueryPairs pairs(query);
  while (const auto pair = pairs.next()) {
    if (is_called(pair->name, name)) return pair->value.data() != nullptr ? pair->value : std::string_view("");
  }
  return {};
}

std::expected<std::string_view, Error> query_value(std::string_view query, std::string_view name,
                                                   std::span<char> out) noexcept {
  const std::string_view encoded = query_encoded(query, name);
  if (encoded.data() == nullptr) return std::unexpected(Error{ErrorCode::not_found});
  return decode_form_text(encoded, out);
}

}  // namespace coir::http
