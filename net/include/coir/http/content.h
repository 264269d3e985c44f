#pragma once

#include <coir/error.h>
#include <coir/http/exchange.h>

#include <cstddef>
#include <expected>
#include <span>
#include <string_view>

namespace coir::http {

// has_media_type tells whether a Content-Type ("text/html; charset=utf-8") names this type, compared without case and
// without parameters.
bool has_media_type(std::string_view content_type, std::string_view type) noexcept;

// is_json_type tells whether a Content-Type is application/json, or ends in +json (RFC 6839).
bool is_json_type(std::string_view content_type) noexcept;

// require_media_type answers 415 unless the request's Content-Type names `type`. Error: unsupported.
[[nodiscard]] std::expected<void, Error> require_media_type(Exchange& exchange, std::string_view type) noexcept;

// read_content reads the whole content of a request into memory of the handler's, whose size is the ceiling. A longer
// one is answered 413, before any of it is asked for when its length is known. After an error the handler just returns.
// Errors: limit; those of Exchange::read_body but end_of_stream.
[[nodiscard]] std::expected<std::string_view, Error> read_content(Exchange& exchange, std::span<char> into) noexcept;

}  // namespace coir::http
