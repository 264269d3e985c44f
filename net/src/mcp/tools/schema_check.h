#pragma once

#include <coir/json.h>
#include <coir/json_fields.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace coir::mcp {

// check_fields reads `arguments` (absent: an empty object) by a declaration into `object`, and returns what is wrong,
// written into `room`, with its path: "arguments.pin: 3 expected 0..31". Empty: nothing is.
std::string_view check_fields(std::span<const Field> fields, const std::optional<JsonView>& arguments, void* object,
                              std::span<char> room) noexcept;

// same_as_value tells whether the value of a mirrored field of a request, decoded, says what the argument does: whole
// numbers are compared as numbers.
bool same_as_value(const JsonView& value, std::string_view field_value) noexcept;

}  // namespace coir::mcp
