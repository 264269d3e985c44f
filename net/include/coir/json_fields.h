#pragma once

#include <coir/json.h>
#include <coir/json_writer.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace coir {

// A plain struct as JSON has it is declared once, member by member:
//
//   struct Item {
//     int id = 0;
//     std::string_view name;
//     std::optional<double> celsius;
//   };
//   constexpr auto fields_of(const Item*) {
//     return fields(field<&Item::id>("id"), field<&Item::name>("name"), field<&Item::celsius>("celsius"));
//   }
//
// fields_of stands in the struct's namespace. With it write_json and Exchange::respond_json write such a struct, and
// lists of them. A tool of MCP names its declarations itself (coir/mcp/detail/tool.h), and is given structs read by them.

enum class FieldKind : std::uint8_t { boolean, integer, number, text, json };

// FieldValue is a member of arguments that has been checked.
struct FieldValue {
  const JsonView& view;
  std::int64_t integer = 0;
  double number = 0;
  bool truth = false;
  std::string_view text = {};
};

// Field is a member of a struct as JSON has it, made by field<&Struct::member>.
struct Field {
  std::string_view name;
  std::string_view description;
  FieldKind kind = FieldKind::json;
  bool required = true;
  bool has_least = false;
  bool has_most = false;
  std::int64_t least = 0;  // of a number; of a text its length in bytes
  std::int64_t most = 0;
  std::span<const std::string_view> choices = {};  // of a text
  std::string_view header = {};                    // Mcp-Param-<this> says the same
  void (*set)(void* object, const FieldValue& value) noexcept = nullptr;
  // write writes the member, with its name; nothing where it is optional and empty.
  void (*write)(const Field& field, JsonWriter& out, const void* object) noexcept = nullptr;
};

// copy_json writes a value of a document as it was read.
void copy_json(JsonWriter& out, JsonView value) noexcept;

namespace detail {

template <class T>
struct Member;
template <class S, class T>
struct Member<T S::*> {
  using Struct = S;
  using Type = T;
};
template <class T>
struct Plain {
  using Type = T;
  static constexpr bool kOptional = false;
};
template <class T>
struct Plain<std::optional<T>> {
  using Type = T;
  static constexpr bool kOptional = true;
};

template <class T>
consteval FieldKind kind_of() {
  if constexpr (std::same_as<T, bool>) {
    return FieldKind::boolean;
  } else if constexpr (detail::WholeNumber<T>) {
    return FieldKind::integer;
  } else if constexpr (std::same_as<T, double>) {
    return FieldKind::number;
  } else if constexpr (std::same_as<T, std::string_view>) {
    return FieldKind::text;
  } else {
    static_assert(std::same_as<T, JsonView>,
                  "a member is bool, an integer, double, std::string_view, or std::optional of these or of JsonView");
    return FieldKind::json;
  }
}

template <auto kMember>
void set_member(void* object, const FieldValue& value) noexcept {
  using M = Member<decltype(kMember)>;
  using T = typename Plain<typename M::Type>::Type;
  auto& member = static_cast<typename M::Struct*>(object)->*kMember;
  if constexpr (std::same_as<T, bool>) {
    member = value.truth;
  } else if constexpr (detail::WholeNumber<T>) {
    member = static_cast<T>(value.integer);
  } else if constexpr (std::same_as<T, double>) {
    member = value.number;
  } else if constexpr (std::same_as<T, std::string_view>) {
    member = value.text;
  } else {
    member = value.view;
  }
}

template <class T>
void write_value(JsonWriter& out, const T& value) noexcept {
  if constexpr (std::same_as<T, JsonView>) {
    copy_json(out, value);
  } else {
    out.value(value);
  }
}

template <auto kMember>
void write_member(const Field& field, JsonWriter& out, const void* object) noexcept {
  using M = Member<decltype(kMember)>;
  const auto& member = static_cast<const typename M::Struct*>(object)->*kMember;
  if constexpr (Plain<typename M::Type>::kOptional) {
    if (member) write_value(out.name(field.name), *member);
  } else {
    write_value(out.name(field.name), member);
  }
}

}  // namespace detail

// FieldOf is a field of that struct, with what bounds it.
template <class S>
struct FieldOf : Field {
  // between bounds a number, or the length of a text in bytes.
  constexpr FieldOf between(std::int64_t low, std::int64_t high) const noexcept {
    FieldOf out = *this;
    out.has_least = out.has_most = true;
    out.least = low;
    out.most = high;
    return out;
  }
  // optional: where it is missing, the struct's own initial value stands.
  constexpr FieldOf optional() const noexcept {
    FieldOf out = *this;
    out.required = false;
    return out;
  }
  // one_of bounds a text to some, which outlive the field.
  constexpr FieldOf one_of(std::span<const std::string_view> texts) const noexcept {
    FieldOf out = *this;
    out.choices = texts;
    return out;
  }
  // mirrored has clients repeat it as a field of the HTTP request, Mcp-Param-<called>, by which proxies choose.
  constexpr FieldOf mirrored(std::string_view called) const noexcept {
    FieldOf out = *this;
    out.header = called;
    return out;
  }
};

template <auto kMember>
constexpr auto field(std::string_view name, std::string_view description = {}) noexcept {
  using M = detail::Member<decltype(kMember)>;
  using P = detail::Plain<typename M::Type>;
  using T = typename P::Type;
  FieldOf<typename M::Struct> out{};
  out.name = name;
  out.description = description;
  out.kind = detail::kind_of<T>();
  out.required = !P::kOptional;
  if constexpr (detail::WholeNumber<T>) {
    // A value that the type cannot hold is out of bounds. Integers over 2^53 lose digits on the way in any case.
    constexpr std::int64_t kSafe = (std::int64_t{1} << 53) - 1;
    if constexpr (sizeof(T) < 8) {
      out.has_least = out.has_most = true;
      out.least = std::numeric_limits<T>::min();
      out.most = std::numeric_limits<T>::max();
    } else {
      out.has_least = out.has_most = true;
      out.least = std::is_signed_v<T> ? -kSafe : 0;
      out.most = kSafe;
    }
  }
  out.set = detail::set_member<kMember>;
  out.write = detail::write_member<kMember>;
  return out;
}

// Fields is the declaration of a struct.
template <class S, std::size_t kSize>
struct Fields {
  using Struct = S;
  static constexpr std::size_t kCount = kSize;

  Field entries[kSize];
};

template <class S, std::same_as<FieldOf<S>>... Rest>
constexpr auto fields(const FieldOf<S>& first, const Rest&... rest) noexcept {
  return Fields<S, 1 + sizeof...(Rest)>{{first, rest...}};
}

// write_fields writes an object with all of its fields; json_fields.cpp has it.
void write_fields(JsonWriter& out, std::span<const Field> fields, const void* object) noexcept;

namespace detail {

template <class T>
concept Declared = requires { fields_of(static_cast<const T*>(nullptr)).entries; };
template <class T>
concept List = requires(const T& list) {
  list.begin();
  list.end();
} && !std::convertible_to<const T&, std::string_view>;

template <Declared T>
inline constexpr auto kFieldsOf = fields_of(static_cast<const T*>(nullptr));

}  // namespace detail

// write_json writes a value: a struct that fields_of declares, a list of values, an optional one (null where it is
// empty), a JsonView, or anything that JsonWriter::value takes.
template <class T>
void write_json(JsonWriter& out, const T& value) noexcept {
  if constexpr (detail::Declared<T>) {
    write_fields(out, detail::kFieldsOf<T>.entries, &value);
  } else if constexpr (detail::List<T>) {
    out.array();
    for (const auto& each : value) write_json(out, each);
    out.end();
  } else if constexpr (detail::Plain<T>::kOptional) {
    if (value) {
      write_json(out, *value);
    } else {
      out.null();
    }
  } else {
    detail::write_value(out, value);
  }
}

}  // namespace coir
