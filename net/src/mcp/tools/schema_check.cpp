#include "mcp/tools/schema_check.h"

#include <coir/format.h>

#include <charconv>

namespace coir::mcp {
namespace {

constexpr std::string_view kNouns[] = {"true or false", "a whole number", "a number", "a text"};

std::string_view noun_of(std::optional<JsonKind> kind) noexcept {
  constexpr std::string_view kKinds[] = {"null", "true or false", "a number", "a text", "an array", "an object"};
  return kind ? kKinds[static_cast<std::size_t>(*kind)] : "nothing";
}

struct Complaint {
  std::span<char> room;
  std::string_view text = {};

  template <class... Parts>
  bool say(std::string_view name, const Parts&... parts) noexcept {
    text = format(room, "arguments.", cut(name, 64), ": ", parts...);
    return false;
  }
};

bool check_number(const Field& field, const JsonView& value, Complaint& complaint, FieldValue& out) noexcept {
  if (value.kind() != JsonKind::number) {
    return complaint.say(field.name, kNouns[static_cast<std::size_t>(field.kind)], " expected, not ",
                         noun_of(value.kind()));
  }
  out.number = value.number().value_or(0);
  if (field.kind == FieldKind::integer) {
    const auto whole = value.integer<std::int64_t>();
    if (!whole) {
      if (const auto large = value.integer<std::uint64_t>()) {
        return complaint.say(field.name, *large, " expected ", field.least, "..", field.most);
      }
      return complaint.say(field.name, "a whole number expected");
    }
    out.integer = *whole;
    if ((field.has_least && *whole < field.least) || (field.has_most && *whole > field.most)) {
      return complaint.say(field.name, *whole, " expected ", field.least, "..", field.most);
    }
    return true;
  }
  if ((field.has_least && out.number < static_cast<double>(field.least)) ||
      (field.has_most && out.number > static_cast<double>(field.most))) {
    return complaint.say(field.name, "a number from ", field.least, " to ", field.most, " expected");
  }
  return true;
}

bool check_text(const Field& field, const JsonView& value, Complaint& complaint, FieldValue& out) noexcept {
  if (value.kind() != JsonKind::text) return complaint.say(field.name, "a text expected, not ", noun_of(value.kind()));
  out.text = value.text().value_or(std::string_view());
  const auto size = static_cast<std::int64_t>(out.text.size());
  if ((field.has_least && size < field.least) || (field.has_most && size > field.most)) {
    return complaint.say(field.name, "a text of ", field.least, " to ", field.most, " bytes expected, this has ", size);
  }
  if (field.choices.empty()) return true;
  for (const std::string_view choice : field.choices) {
    if (choice == out.text) return true;
  }
  char known[128];
  Formatter names(known);
  const char* comma = "";
  for (const std::string_view choice : field.choices) {
    names.add(comma, choice);
    comma = ", ";
  }
  return complaint.say(field.name, cut(out.text, 40), " expected one of ", names.text());
}

bool check(const Field& field, const JsonView& value, Complaint& complaint, FieldValue& out) noexcept {
  switch (field.kind) {
    case FieldKind::boolean:
      if (value.kind() != JsonKind::boolean) {
        return complaint.say(field.name, "true or false expected, not ", noun_of(value.kind()));
      }
      out.truth = value.boolean().value_or(false);
      return true;
    case FieldKind::integer:
    case FieldKind::number:
      return check_number(field, value, complaint, out);
    case FieldKind::text:
      return check_text(field, value, complaint, out);
    case FieldKind::json:
      return true;
  }
  return true;
}

}  // namespace

std::string_view check_fields(std::span<const Field> fields, const std::optional<JsonView>& arguments, void* object,
                              std::span<char> room) noexcept {
  Complaint complaint{room};
  if (arguments && arguments->kind() != JsonKind::object) return format(room, "arguments: an object expected");
  std::size_t known = 0;
  for (const Field& field : fields) {
    const auto value = arguments ? arguments->find(field.name) : std::nullopt;
    if (!value) {
      if (field.required) {
        complaint.say(field.name, "missing");
        return complaint.text;
      }
      continue;
    }
    ++known;
    FieldValue checked{.view = *value};
    if (!check(field, *value, complaint, checked)) return complaint.text;
    if (field.set != nullptr) field.set(object, checked);
  }
  if (!arguments || arguments->size() == known) return {};
  for (const auto [name, value] : arguments->members()) {
    bool declared = false;
    for (const Field& field : fields) declared = declared || field.name == name;
    // A member that is null stands for one that is not there; one of two of a name was not looked at.
    if (!declared) {
      complaint.say(name, "nothing of that name is expected");
      return complaint.text;
    }
  }
  return {};
}

bool same_as_value(const JsonView& value, std::string_view field_value) noexcept {
  switch (value.kind().value_or(JsonKind::null)) {
    case JsonKind::text:
      return value.text().value_or(std::string_view()) == field_value;
    case JsonKind::boolean:
      return field_value == (value.boolean().value_or(false) ? "true" : "false");
    case JsonKind::number: {
      const auto whole = value.integer<std::int64_t>();
      if (!whole) return false;
      // "42.0" is 42, too.
      std::string_view digits = field_value;
      if (const std::size_t point = digits.find('.'); point != std::string_view::npos) {
        if (point + 1 == digits.size() || digits.find_first_not_of('0', point + 1) != std::string_view::npos)
          return false;
        digits = digits.substr(0, point);
      }
      std::int64_t said = 0;
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), said);
      return error == std::errc() && end == digits.data() + digits.size() && said == *whole;
    }
    default:
      return false;
  }
}

}  // namespace coir::mcp
