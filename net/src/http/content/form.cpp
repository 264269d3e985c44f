#include <coir/http/content.h>

namespace coir::http {

std::expected<std::string_view, Error> read_form(Exchange& exchange, std::span<char> into) noexcept {
  if (auto typed = require_media_type(exchange, "application/x-www-form-urlencoded"); !typed) {
    return std::unexpected(typed.error());
  }
  return read_content(exchange, into);
}

}  // namespace coir::http
