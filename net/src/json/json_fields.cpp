#include <coir/json_fields.h>

#include "json/state.h"

namespace coir {

namespace {

// copy looks at the values themselves: to ask a view for what a number is not would leave a complaint in the document.
// Depth is bounded by the document's, and each level takes less than 200 bytes of stack.
void copy(JsonWriter& out, yyjson_val* value) noexcept {
  std::size_t index, count;
  yyjson_val *name, *each;
  switch (yyjson_get_type(value)) {
    case YYJSON_TYPE_OBJ:
      out.object();
      yyjson_obj_foreach(value, index, count, name, each) {
        copy(out.name({yyjson_get_str(name), yyjson_get_len(name)}), each);
      }
      out.end();
      return;
    case YYJSON_TYPE_ARR:
      out.array();
      yyjson_arr_foreach(value, index, count, each) copy(out, each);
      out.end();
      return;
    case YYJSON_TYPE_BOOL:
      out.value(yyjson_get_bool(value));
      return;
    case YYJSON_TYPE_NUM:
      if (yyjson_is_uint(value)) {
        out.value(yyjson_get_uint(value));
      } else if (yyjson_is_sint(value)) {
        out.value(yyjson_get_sint(value));
      } else {
        out.value(yyjson_get_real(value));
      }
      return;
    case YYJSON_TYPE_STR:
      out.value(std::string_view(yyjson_get_str(value), yyjson_get_len(value)));
      return;
    default:
      out.null();
  }
}

}  // namespace

void copy_json(JsonWriter& out, JsonView value) noexcept {
  copy(out, detail::raw(value.value()));
}

void write_fields(JsonWriter& out, std::span<const Field> fields, const void* object) noexcept {
  out.object();
  for (const Field& field : fields) field.write(field, out, object);
  out.end();
}

}  // namespace coir
