#pragma once

#include <coir/error.h>
#include <coir/http/exchange.h>
#include <coir/json.h>
#include <coir/json_fields.h>
#include <coir/json_writer.h>

#include <expected>
#include <span>
#include <string_view>
#include <type_traits>

namespace coir::http {

// A handler that takes JSON and answers with JSON:
//
//   void set_limits(Exchange& exchange) {
//     auto document = read_json(exchange);
//     if (!document) return;                                  // it has been answered
//     const auto high = document->root()["high"].integer<int>(-40, 125);
//     if (!high) return refuse_json(exchange, *document);     // 400 "high: a whole number from -40 to 125 is wanted ..."
//     ...
//     exchange.respond_json(limits);
//   }
//
// begin_json and a JsonWriter are for an answer that no value holds.

// read_json reads a request's content as JSON. It answers an error itself: 415 for another media type than
// application/json or one that ends in +json, 413 for content longer than `limits` allow or than `memory` holds, 400
// for what is not JSON or nested too deep, with a line that tells where, 503 when the ledger has no room. After an
// error the handler just returns.
//
// Without memory it is charged to account::json, while content arrives with `limits.max_bytes`, or Content-Length
// bytes. `memory` outlives the document: of n bytes, a text of up to n / 16 bytes is certain to fit, whatever it holds,
// and a usual one of n / 6. Errors: unsupported (415), limit, invalid, no_memory; those of Exchange::read_body but
// end_of_stream.
[[nodiscard]] std::expected<JsonDocument, Error> read_json(Exchange& exchange, const JsonLimits& limits = {}) noexcept;
[[nodiscard]] std::expected<JsonDocument, Error> read_json(Exchange& exchange, std::span<char> memory,
                                                           const JsonLimits& limits = {}) noexcept;

// refuse_json answers 400 with the document's complaint.
void refuse_json(Exchange& exchange, const JsonDocument& document) noexcept;

// begin_json begins an answer of type application/json, for a JsonWriter. Errors: as Exchange::begin_chunked.
[[nodiscard]] std::expected<void, Error> begin_json(Exchange& exchange, int status = 200) noexcept;

namespace detail {

using WriteJson = void(JsonWriter& out, const void* value);
void respond_json(Exchange& exchange, int status, const void* value, WriteJson* write) noexcept;

}  // namespace detail

template <class T>
void Exchange::respond_json(const T& value, int status) noexcept {
  if constexpr (coir::detail::Plain<T>::kOptional || (std::is_pointer_v<T> && !std::is_same_v<T, const char*>)) {
    if (!value) return respond_status(404);
    respond_json(*value, status);
  } else {
    detail::respond_json(*this, status, &value,
                         [](JsonWriter& out, const void* given) { write_json(out, *static_cast<const T*>(given)); });
  }
}

}  // namespace coir::http
