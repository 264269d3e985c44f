#include <coir/mcp/detail/field.h>

#include <coir/worker_stack.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

namespace coir::mcp::detail {

// copy_json.cpp: values of documents and numbers, written again.

void write_number(JsonWriter& out, double number) noexcept {
  char digits[32];
  int size = 0;
  if (!isfinite(number)) {
    out.null();
    return;
  }
  // The C library's printf and strtod go 9 KB deep.
  on_worker_stack([&] {
    for (int precision = 15; precision <= 17; ++precision) {
      size = snprintf(digits, sizeof digits, "%.*g", precision, number);
      if (strtod(digits, nullptr) == number) break;
    }
  });
  out.raw({digits, static_cast<std::size_t>(size)});
}

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
        write_number(out, value.number().value_or(0));
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

}  // namespace coir::mcp::detail
