#include "setting.h"

#include <coir/quantity.h>
#include <string.h>

#include <string_view>

#include "row.h"

bool Setting::wrong(const char* cure, std::initializer_list<Word> what) const noexcept {
  char problem[kLineBytes];
  coir::Formatter text_of(problem);
  for (const Word& word : what) word.add_to(text_of);
  if (file == nullptr) return complain(cure, {"--", row->name, " '", text, "': ", text_of.text()});
  std::string_view key = row->name;
  if (is_route_key()) key = std::string_view(text).substr(0, std::string_view(text).find('='));
  return complain_at(file, line, cure, {key, ": ", text_of.text()});
}

bool Setting::is_route_key() const noexcept {
  return row == &route_key_row();
}

std::optional<bool> Setting::flag() const noexcept {
  const std::string_view word = text;
  if (word == "yes" || (file == nullptr && word.empty())) return true;
  if (word == "no") return false;
  return wrong("write yes or no", {"neither yes nor no"}), std::nullopt;
}

std::optional<std::uint64_t> Setting::number() const noexcept {
  const auto value = coir::parse_size(text);
  if (value && *value >= row->least && *value <= row->most) return value;
  return wrong({"not a number from ", row->least, " to ", row->most}), std::nullopt;
}

std::optional<std::chrono::milliseconds> Setting::time() const noexcept {
  if (row->kind == Kind::duration_or_zero && strcmp(text, "0") == 0) return std::chrono::milliseconds(0);
  const auto value = coir::parse_time(text);
  if (!value) wrong({"not a time such as 500ms, 30s or 2m"});
  return value;
}

bool Setting::names_file() const noexcept {
  // An empty name is a variable that was not set. The option must not be taken for one that was left out.
  return *text != '\0' || wrong({"a name is missing"});
}
