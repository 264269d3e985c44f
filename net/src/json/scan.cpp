#include "json/scan.h"

namespace coir::detail {

JsonScan scan_json(std::string_view text, std::size_t max_depth) noexcept {
  JsonScan scan;
  std::size_t depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    switch (text[at]) {
      case '"':
        while (++at < text.size() && text[at] != '"') at += text[at] == '\\';
        break;
      case '[':
      case '{':
        ++scan.values;
        if (++depth > max_depth && !scan.too_deep) {
          scan.too_deep = true;
          scan.too_deep_at = at;
        }
        break;
      case ']':
      case '}':
        if (depth > 0) --depth;
        break;
      case ',':
      case ':':
        ++scan.values;
        break;
      default:
        break;
    }
  }
  return scan;
}

}  // namespace coir::detail
