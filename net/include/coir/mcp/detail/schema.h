#pragma once

#include <coir/json_fields.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace coir::mcp::detail {

struct NoFields {
  static constexpr std::size_t kCount = 0;
};

// SchemaWriter writes a schema, or with `to` null counts its bytes.
struct SchemaWriter {
  char* to = nullptr;
  std::size_t size = 0;

  constexpr void put(std::string_view text) {
    for (const char c : text) {
      if (to != nullptr) to[size] = c;
      ++size;
    }
  }
  constexpr void quoted(std::string_view text) {
    put("\"");
    for (const char c : text) {
      if (c == '"' || c == '\\') put("\\");
      const char one[] = {static_cast<unsigned char>(c) < ' ' ? ' ' : c};
      put({one, 1});
    }
    put("\"");
  }
  constexpr void number(std::int64_t value) {
    char digits[20] = {};
    std::size_t count = 0;
    std::uint64_t left = value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
    do {
      digits[count++] = static_cast<char>('0' + left % 10);
      left /= 10;
    } while (left != 0);
    if (value < 0) put("-");
    while (count > 0) put({&digits[--count], 1});
  }
  constexpr void field(const Field& field) {
    quoted(field.name);
    constexpr std::string_view kTypes[] = {"boolean", "integer", "number", "string"};
    put(":{");
    const char* comma = "";
    const auto member = [&](std::string_view name) {
      put(comma);
      comma = ",";
      quoted(name);
      put(":");
    };
    if (field.kind != FieldKind::json) {
      member("type");
      quoted(kTypes[static_cast<std::size_t>(field.kind)]);
    }
    if (!field.description.empty()) {
      member("description");
      quoted(field.description);
    }
    if (field.has_least) {
      member(field.kind == FieldKind::text ? "minLength" : "minimum");
      number(field.least);
    }
    if (field.has_most) {
      member(field.kind == FieldKind::text ? "maxLength" : "maximum");
      number(field.most);
    }
    if (!field.choices.empty()) {
      member("enum");
      put("[");
      for (std::size_t i = 0; i < field.choices.size(); ++i) {
        if (i > 0) put(",");
        quoted(field.choices[i]);
      }
      put("]");
    }
    if (!field.header.empty()) {
      member("x-mcp-header");
      quoted(field.header);
    }
    put("}");
  }
  constexpr void object(std::span<const Field> fields) {
    put(R"({"type":"object","properties":{)");
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (i > 0) put(",");
      field(fields[i]);
    }
    put("}");
    const char* before = ",\"required\":[";
    for (const Field& each : fields) {
      if (!each.required) continue;
      put(before);
      before = ",";
      quoted(each.name);
    }
    if (before[1] == '\0') put("]");
    put(",\"additionalProperties\":false}");
  }
};

template <std::size_t kSize>
struct SchemaText {
  char text[kSize];
  constexpr std::string_view view() const noexcept { return {text, kSize}; }
};

template <auto& kFields>
inline constexpr auto kSchema = [] {
  constexpr std::size_t kSize = [] {
    SchemaWriter counter;
    counter.object(kFields.entries);
    return counter.size;
  }();
  SchemaText<kSize> out{};
  SchemaWriter writer{out.text, 0};
  writer.object(kFields.entries);
  return out;
}();

}  // namespace coir::mcp::detail
