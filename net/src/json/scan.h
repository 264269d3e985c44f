#pragma once

#include <cstddef>
#include <string_view>

namespace coir::detail {

// JsonScan is what a text's brackets and commas tell without parsing it. For a text that is not JSON the result
// bounds only the memory that is set aside for parsing it.
struct JsonScan {
  std::size_t values = 1;       // at least as many as the text has values and names
  bool too_deep = false;        // more than `max_depth` brackets are open
  std::size_t too_deep_at = 0;  // at this byte
};

// scan_json looks at each byte once. Brackets inside strings do not count.
JsonScan scan_json(std::string_view text, std::size_t max_depth) noexcept;

// document_bytes is how much memory is certain to hold a text of so many bytes and its document.
std::size_t document_bytes(std::size_t text_bytes, const JsonScan& scan) noexcept;

}  // namespace coir::detail
