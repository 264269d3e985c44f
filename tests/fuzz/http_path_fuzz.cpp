// A resolved path names something below the root: no empty, "." or ".." segment, no control, no leading slash.

#include <coir/http/wire/path.h>

#include <algorithm>

#include "require.h"

using namespace coir::http;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const Exact raw(std::string_view(reinterpret_cast<const char*>(data), size));
  const std::size_t room_size = std::max<std::size_t>(2, size + 1);
  char* const room = static_cast<char*>(malloc(room_size));
  const ResolvedPath path = resolve_path(raw.view(), {room, room_size});
  if (path.status == 0) {
    require(begins(raw.view(), "/"));
    require(path.relative.data() == room && room[path.relative.size()] == '\0');
    require(strlen(room) == path.relative.size());
    if (path.relative != ".") {
      std::string_view rest = path.relative;
      for (;;) {
        const std::size_t slash = std::min(rest.find('/'), rest.size());
        const std::string_view segment(rest.data(), slash);
        require(!segment.empty() && segment != "." && segment != "..");
        require(std::ranges::none_of(segment, [](char c) { return (c >= 0 && c < 0x20) || c == 0x7f; }));
        if (slash == rest.size()) break;
        rest.remove_prefix(slash + 1);
      }
    } else {
      require(path.directory);
    }
  } else {
    require(path.status == 400 || path.status == 404);
  }
  free(room);
  return 0;
}
