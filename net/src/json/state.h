#pragma once

#include <yyjson.h>

#include <coir/json.h>

namespace coir::detail {

// JsonValue is yyjson's yyjson_val under a name that a public header may use without yyjson's own; it is never defined.
inline const JsonValue* of(const yyjson_val* value) noexcept {
  return reinterpret_cast<const JsonValue*>(value);
}

// yyjson's functions that only look take pointers to what they could change.
inline yyjson_val* raw(const JsonValue* value) noexcept {
  return const_cast<yyjson_val*>(reinterpret_cast<const yyjson_val*>(value));
}

// JsonComplaint is the first thing that was asked of a value and was not so.
struct JsonComplaint {
  static constexpr std::size_t kNameBytes = 48;  // of a missing member's name; of a longer one the end is cut off

  const char* wanted = nullptr;      // null: there is no complaint
  const char* flaw = nullptr;        // instead of what is wanted: what is wrong with the value
  const JsonValue* value = nullptr;  // null: missing from `holder`
  const JsonValue* holder = nullptr;
  bool is_named = false;  // what is missing was asked for by its name, not by its place
  std::size_t index = 0;
  bool has_range = false;
  std::int64_t least = 0;
  std::uint64_t most = 0;
  std::uint8_t name_bytes = 0;
  char name[kNameBytes];

  bool any() const noexcept { return wanted != nullptr; }
};

// JsonState stands in the document's memory, behind the text and before the values. json.cpp makes documents, view.cpp
// looks into them, complaint.cpp writes what was found wrong.
//
//   | text, then 4 zeros, which yyjson reads past | JsonState | pool: yyjson_doc and its values |
struct JsonState {
  yyjson_doc* document = nullptr;
  void* block = nullptr;  // of the heap; null where the memory is the caller's
  std::size_t charged = 0;
  JsonComplaint complaint;
};

}  // namespace coir::detail
