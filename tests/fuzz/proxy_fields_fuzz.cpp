// A request with any fields: the proxy passes on none that frames it or belongs to the hop, Connection takes away none that
// has a rule of its own, and no name stands for two.

#include <string.h>

#include "proxy/field_kind.h"
#include "require.h"

using namespace coir::http;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  Source source(data, size);
  const Exact bytes(source.rest());
  Header storage[64];
  Request request;
  if (parse_head(bytes.view(), 0, storage, {}, request).state != ParseState::complete) return 0;
  bool names = false;
  for (const Header& field : request.headers) {
    if (kind_of(field.name) == FieldKind::connection) names = names || names_any(field.value);
  }
  for (const Header& field : request.headers) {
    const FieldKind kind = kind_of(field.name);
    for (const std::string_view framing :
         {"Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "TE", "Host"}) {
      if (equals_ignoring_case(field.name, framing)) require(kind != FieldKind::passed);
    }
    if (is_named(request.headers, field, kind)) {
      require(names && kind == FieldKind::passed && !equals_ignoring_case(field.name, "Authorization"));
    }
    if (kind != FieldKind::passed) require(!may_trail(field.name));
    char twin[64];
    if (field.name.size() > sizeof twin || field.name.find('_') == field.name.npos) continue;
    require(!may_trail(field.name));
    for (std::size_t at = 0; at < field.name.size(); ++at) twin[at] = field.name[at] == '_' ? '-' : field.name[at];
    const std::string_view name(twin, field.name.size());
    if (kind_of(name) != FieldKind::passed || request.header(name).data() != nullptr) {
      require(is_twin(request.headers, field.name, {}));
    }
  }
  return 0;
}
