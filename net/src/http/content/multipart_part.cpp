// The header of a part: what MultipartParser reads between a boundary and the content.

#include <coir/http/detail/multipart_parser.h>

#include <utility>

#include "http/text/characters.h"
#include "http/text/parameters.h"

namespace coir::http::detail {
namespace {

bool is_file_name(std::string_view text) noexcept {
  return text != "." && text != ".." &&
         std::ranges::none_of(text, [](char c) { return c == '/' || c == '\\' || c == '\t'; });
}

// is_plain tells whether content by this transfer encoding is what it says; others are deprecated (RFC 7578, 4.7).
bool is_plain(std::string_view encoding) noexcept {
  return equals_ignoring_case(encoding, "binary") || equals_ignoring_case(encoding, "8bit") ||
         equals_ignoring_case(encoding, "7bit");
}

}  // namespace

// read_fields reads the lines of a part's header, each with its CRLF, and returns a status, 0 when all is in order.
std::uint16_t MultipartParser::read_fields(std::span<char> block) noexcept {
  bool disposed = false;
  while (!block.empty()) {
    const std::string_view text(block.data(), block.size());
    const std::string_view line = first(text, text.find("\r\n"));
    block = block.subspan(line.size() + 2);
    const std::string_view name = until(line, ':');
    if (name.size() == line.size() || !is_token(name)) return 400;
    const std::string_view value = trim(after(line, name.size() + 1));
    if (std::ranges::any_of(value, [](char c) { return is(c, kFieldControl); })) return 400;
    if (equals_ignoring_case(name, "content-disposition")) {
      if (std::exchange(disposed, true)) return 400;
      if (const std::uint16_t status = read_disposition(value)) return status;
    } else if (equals_ignoring_case(name, "content-type")) {
      if (part_.content_type.data() != nullptr) return 400;
      part_.content_type = value;
    } else if (equals_ignoring_case(name, "content-transfer-encoding")) {
      if (!is_plain(value)) return 400;
    }
  }
  return disposed ? 0 : 400;
}

std::uint16_t MultipartParser::read_disposition(std::string_view value) noexcept {
  const std::string_view type = until(value, ';');
  if (!equals_ignoring_case(trim(type), "form-data")) return 400;
  FieldParameters parameters(after(value, type.size()));
  while (const auto parameter = parameters.next()) {
    // "filename*" would be a second name for the same file, and RFC 7578, 4.2 forbids it.
    if (parameter->name.back() == '*') return 400;
    const bool is_name = equals_ignoring_case(parameter->name, "name");
    if (!is_name && !equals_ignoring_case(parameter->name, "filename")) continue;
    std::string_view& wanted = is_name ? part_.name : part_.file_name;
    if (wanted.data() != nullptr) return 400;
    // The header lies in memory_, where a name may be written anew.
    char* const place = memory_.data() + (parameter->raw.data() - memory_.data());
    wanted = parameter->value({place, parameter->raw.size()}).value_or("");
    if (wanted.size() > limits_.max_name) return 413;
  }
  if (!parameters.whole() || part_.name.data() == nullptr) return 400;
  return is_file_name(part_.file_name) ? 0 : 400;
}

}  // namespace coir::http::detail
