#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "mcp/message/raw_json.h"

namespace coir::mcp::detail {

// ParameterFields walks the properties of a tool's input schema that x-mcp-header marks, and tells which field of the
// request repeats which argument. Schema and arguments are JSON that was parsed before. At most 8 objects deep.
//
//   ParameterFields fields(schema, room);
//   while (const auto field = fields.next(arguments)) add(field->name, field->value);
class ParameterFields {
 public:
  struct Field {
    std::string_view name;  // "Mcp-Param-Region"
    std::string_view value;
  };

  // Encoded values lie in `room`.
  ParameterFields(std::string_view schema, std::span<char> room) noexcept;

  // next returns the field of the next marked property that has an argument which is not null.
  std::optional<Field> next(std::string_view arguments) noexcept;
  // full tells that the walk has ended because the room has.
  bool full() const noexcept { return full_; }

  // sound tells whether requests can carry what the schema marks: names are tokens and differ, only texts, whole numbers
  // and truth values are marked, and only properties that lie in objects.
  static bool sound(std::string_view schema) noexcept;

 private:
  static constexpr std::size_t kMostDepth = 8;
  struct Level {
    RawMembers properties{std::string_view()};
    std::string_view name;  // of the object, as it is written
  };

  // next_marked finds the next marked property; its path is the names of the levels, and `name`.
  bool next_marked(std::string_view& name, std::string_view& property) noexcept;
  std::string_view argument_at(std::string_view arguments, std::string_view name) const noexcept;
  std::string_view keep(std::string_view before, std::string_view text) noexcept;
  std::string_view value_of(std::string_view argument) noexcept;

  std::span<char> room_;
  std::size_t depth_ = 0;
  bool full_ = false;
  Level levels_[kMostDepth];
};

}  // namespace coir::mcp::detail
