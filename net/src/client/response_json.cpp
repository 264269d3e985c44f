#include <coir/http/client.h>
#include <coir/http/content.h>
#include <coir/json.h>

namespace coir::http {

std::expected<JsonDocument, Error> Response::json(std::size_t most) noexcept {
  if (!is_json_type(header("Content-Type"))) return std::unexpected(Error{ErrorCode::unsupported});
  const auto text = this->text(most);
  if (!text) return std::unexpected(text.error());
  auto document = JsonDocument::parse(*text, {.max_bytes = most});
  if (document) return std::move(*document);
  const bool no_memory = document.error().error == ErrorCode::no_memory;
  return std::unexpected(no_memory ? document.error().error : Error{ErrorCode::protocol});
}

}  // namespace coir::http
