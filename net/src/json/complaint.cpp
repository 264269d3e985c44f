// JsonDocument::complaint of coir/json.h.
#include <coir/json.h>

#include <algorithm>

#include "json/state.h"

namespace coir {

using detail::JsonComplaint;
using detail::JsonState;
using detail::raw;

namespace {

constexpr std::size_t kNameShown = 48;

const char* describe(yyjson_val* value) noexcept {
  switch (yyjson_get_type(value)) {
    case YYJSON_TYPE_NULL:
      return "null";
    case YYJSON_TYPE_BOOL:
      return "true or false";
    case YYJSON_TYPE_NUM:
      return "a number";
    case YYJSON_TYPE_STR:
      return "a text";
    case YYJSON_TYPE_ARR:
      return "an array";
    default:
      return "an object";
  }
}

bool is_plain(std::string_view name) noexcept {
  return !name.empty() && name.size() <= kNameShown && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

// Path writes the way to a value: sensors[2].limits["my name"].
class Path {
 public:
  explicit Path(Formatter& out) noexcept : out_(out) {}

  void name(std::string_view name) noexcept {
    if (is_plain(name)) {
      out_.add(empty_ ? "" : ".", name);
    } else {
      out_.add("[", json_quoted(name.substr(0, kNameShown)), "]");
    }
    empty_ = false;
  }
  void index(std::size_t index) noexcept {
    out_.add("[", index, "]");
    empty_ = false;
  }
  void end() noexcept {
    if (empty_) out_.add("the document");
  }

 private:
  Formatter& out_;
  bool empty_ = true;
};

// write_path goes down from the root to `value`. A container's values follow it in memory, each with all that it holds, so
// that the child whose values end behind `value` is the one to go down to.
void write_path(yyjson_val* at, yyjson_val* value, Path& path) noexcept {
  while (at != value) {
    const bool is_object = yyjson_is_obj(at);
    yyjson_val* child = unsafe_yyjson_get_first(at);
    for (std::size_t index = 0;; ++index) {
      yyjson_val* const name = child;
      if (is_object) ++child;
      yyjson_val* const next = unsafe_yyjson_get_next(child);
      if (value >= next) {
        child = next;
        continue;
      }
      if (is_object) {
        path.name({yyjson_get_str(name), yyjson_get_len(name)});
      } else {
        path.index(index);
      }
      break;
    }
    at = child;
  }
}

}  // namespace

std::string_view JsonDocument::complaint(std::span<char> room) const noexcept {
  const JsonComplaint& told = state_->complaint;
  if (!told.any()) return {};
  Formatter out(room);
  Path path(out);
  yyjson_val* const root = yyjson_doc_get_root(state_->document);
  if (told.value != nullptr) {
    write_path(root, raw(told.value), path);
    path.end();
    out.add(": ");
    if (told.flaw != nullptr) {
      out.add(told.flaw);
      if (told.most != 0) out.add(", at most ", told.most, " bytes are taken");
      return out.text();
    }
    out.add(told.wanted);
    if (told.has_range) out.add(" from ", told.least, " to ", told.most);
    out.add(" is wanted, this is ");
    if (told.has_range && yyjson_is_uint(raw(told.value))) {
      out.add(yyjson_get_uint(raw(told.value)));
    } else if (told.has_range && yyjson_is_sint(raw(told.value))) {
      out.add(yyjson_get_sint(raw(told.value)));
    } else {
      out.add(describe(raw(told.value)));
    }
    return out.text();
  }
  write_path(root, raw(told.holder), path);
  if (told.is_named) {
    path.name({told.name, told.name_bytes});
  } else {
    path.index(told.index);
  }
  path.end();
  out.add(": missing");
  return out.text();
}

}  // namespace coir
