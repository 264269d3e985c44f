#pragma once

#include <coir/error.h>
#include <coir/http/exchange.h>
#include <coir/http/query.h>

#include <cstddef>
#include <expected>
#include <span>
#include <string_view>

namespace coir::http {

// read_form reads the content of a form (application/x-www-form-urlencoded) into memory of the handler's, whose size is
// the ceiling, and returns its pairs as they were sent: they are walked and decoded as those of a query.
//
//   auto form = read_form(exchange, exchange.scratch());
//   if (!form) return;
//   auto name = query_value(*form, "name", memory);
//
// It answers a faulty request itself: another type by 415, a longer form by 413. After an error the handler just
// returns. Errors: unsupported, limit; those of Exchange::read_body but end_of_stream. multipart.h reads the other kind
// of form.
[[nodiscard]] std::expected<std::string_view, Error> read_form(Exchange& exchange, std::span<char> into) noexcept;

}  // namespace coir::http
