// The head of a transfer's request. Declared in client/transfer.h.
#include "client/transfer.h"
#include "outbound/basic_field.h"

namespace coir::http::detail {
namespace {

bool is_secret(const RequestField& field) noexcept {
  return field.secret || equals_ignoring_case(field.name, "Authorization") ||
         equals_ignoring_case(field.name, "Cookie") || equals_ignoring_case(field.name, "Proxy-Authorization");
}

bool has_field(const ClientRequest& request, std::string_view name) noexcept {
  for (const RequestField& field : request.fields) {
    if (equals_ignoring_case(field.name, name)) return true;
  }
  return false;
}

}  // namespace

std::expected<std::string_view, Error> Transfer::write_head() noexcept {
  for (;;) {
    Formatter head(room);
    head.add(method, " ");
    if (proxy && !url.secure) head.add("http://", url.authority);
    head.add(url.path, url.query.data() != nullptr ? "?" : "", url.query, " HTTP/1.1\r\n");
    if (!has_field(*request, "Host") || drops_secrets) head.add("Host: ", url.authority, "\r\n");
    if (proxy && !url.secure && !add_basic_field(head, "Proxy-Authorization", proxy->user_info)) {
      return std::unexpected(Error{ErrorCode::invalid});
    }
    if (!has_field(*request, "Authorization") && !add_basic_field(head, "Authorization", url.user_info)) {
      return std::unexpected(Error{ErrorCode::invalid});
    }
    if (!has_field(*request, "User-Agent")) head.add("User-Agent: coir\r\n");
    for (const RequestField& field : request->fields) {
      if (drops_secrets && (is_secret(field) || equals_ignoring_case(field.name, "Host"))) continue;
      head.add(field.name, ": ", field.value, "\r\n");
    }
    asks_coding = core.options.coding != nullptr && !request->range && !has_field(*request, "Accept-Encoding");
    if (asks_coding) head.add("Accept-Encoding: ", core.options.coding->name, "\r\n");
    if (request->range) {
      head.add("Range: bytes=", request->range->first, "-");
      if (request->range->last) head.add(*request->range->last);
      head.add("\r\n");
      if (!request->if_range.empty()) head.add("If-Range: ", request->if_range, "\r\n");
    }
    if (with_content) {
      const bool has_type = has_content() && !request->content_type.empty();
      if (has_type) head.add("Content-Type: ", request->content_type, "\r\n");
      if (request->upload != nullptr && !request->upload->size) {
        head.add("Transfer-Encoding: chunked\r\n");
      } else if (has_content() || method == "POST" || method == "PUT" || method == "PATCH") {
        const std::uint64_t size = request->upload != nullptr ? *request->upload->size : request->content.size();
        head.add("Content-Length: ", size, "\r\n");
      }
      if (waits_for_leave()) head.add("Expect: 100-continue\r\n");
    }
    head.add("\r\n");
    if (head.fits()) return head.text();
    if (auto grown = grow(0); !grown) return std::unexpected(grown.error());
  }
}

}  // namespace coir::http::detail
