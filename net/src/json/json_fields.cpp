#include <coir/json_fields.h>

namespace coir {

namespace {

void copy_plain(JsonWriter& out, const JsonView& value) noexcept {
  switch (value.kind().value_or(JsonKind::null)) {
    case JsonKind::boolean:
      out.value(value.boolean().value_or(false));
      return;
    case JsonKind::number:
      if (const auto whole = value.integer<std::int64_t>()) {
        out.value(*whole);
      } else if (const auto large = value.integer<std::uint64_t>()) {
        out.value(*large);
      } else {
        out.value(value.number().value_or(0));
      }
      return;
    case JsonKind::text:
      out.value(value.text().value_or(std::string_view()));
      return;
    default:
      out.null();
  }
}

}  // namespace

void copy_json(JsonWriter& out, JsonView value) noexcept {
  // Depth is bounded by the document's, and each level takes less than 200 bytes of stack.
  if (value.kind() == JsonKind::object) {
    out.object();
    for (const auto [name, member] : value.members()) copy_json(out.name(name), member);
    out.end();
  } else if (value.kind() == JsonKind::array) {
    out.array();
    for (const JsonView each : value.elements()) copy_json(out, each);
    out.end();
  } else {
    copy_plain(out, value);
  }
}

void write_fields(JsonWriter& out, std::span<const Field> fields, const void* object) noexcept {
  out.object();
  for (const Field& field : fields) field.write(field, out, object);
  out.end();
}

}  // namespace coir
