#pragma once

// The content of a request: as bytes, a form, files, or JSON.
//
//   void change_name(Exchange& exchange) {
//     auto form = read_form(exchange, exchange.scratch());
//     if (!form) return;                                              // it has been answered
//     char memory[64];
//     if (auto given = query_value(*form, "name", memory)) show(*given);
//     exchange.respond_status(204);
//   }

#include <coir/config.h>
#include <coir/deadline.h>
#include <coir/error.h>
#include <coir/http/detail/multipart_parser.h>
#include <coir/http/exchange.h>
#include <coir/http/wire/query.h>

#if COIR_JSON
#include <coir/json.h>
#include <coir/json_fields.h>
#include <coir/json_writer.h>
#endif

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

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

// read_form (form.cpp) reads the content of a form (application/x-www-form-urlencoded) into memory of the handler's,
// whose size is the ceiling, and returns its pairs as they were sent: they are walked and decoded as those of a query.
//
//   auto form = read_form(exchange, exchange.scratch());
//   if (!form) return;
//   char room[64];
//   auto name = query_value(*form, "name", room);
//
// It answers a faulty request itself: another type by 415, a longer form by 413. After an error the handler just
// returns. Errors: unsupported, limit; those of Exchange::read_body but end_of_stream. Multipart reads the other kind
// of form.
[[nodiscard]] std::expected<std::string_view, Error> read_form(Exchange& exchange, std::span<char> into) noexcept;

// Multipart (multipart.cpp) reads a browser's form with files (multipart/form-data) part by part, however large, in the
// memory that it is given: exchange.scratch() will do.
//
//   void upload(Exchange& exchange) {
//     Multipart form(exchange, exchange.scratch());
//     for (;;) {
//       auto part = form.next();
//       if (!part && part.error() == ErrorCode::end_of_stream) break;
//       if (!part) return;
//       if (part->name == "image" && !form.save("/data/image")) return;
//     }
//     exchange.respond(200, "text/plain", "stored\n");
//   }
//
// It answers a faulty request itself: another type by 415, a form that is malformed or whose last boundary is missing
// by 400, one over a ceiling by 413, a full disk by 507. After an error the handler just returns. A part that was read
// to its end is whole: the boundary behind it has been seen. The parts after it may still be wrong, as next() tells.
//
// Errors of all calls: unsupported, invalid, limit; those of Exchange::read_body, where end_of_stream has the meaning
// that each call names. From the exchange's handler.
class Multipart {
 public:
  // kLeastMemory is for the default limits: a header of max_header_bytes and as much for content. Less is `limit`.
  static constexpr std::size_t kLeastMemory = 2048;

  // The memory must outlive it.
  Multipart(Exchange& exchange, std::span<char> memory, const MultipartLimits& limits = {}) noexcept;

  // next goes on to the next part, whose names are valid until the next call of next(). The unread rest of the part
  // before is dropped. end_of_stream: the form is whole.
  [[nodiscard]] std::expected<Part, Error> next() noexcept;

  // read waits for at least one byte of the part's content and returns how many were put into `into` (not empty).
  // end_of_stream: all of it has been read.
  [[nodiscard]] std::expected<std::size_t, Error> read(std::span<char> into) noexcept;

  // read_all reads the rest of the part's content, for fields that are short. More than fits is answered 413.
  [[nodiscard]] std::expected<std::string_view, Error> read_all(std::span<char> into) noexcept;

  // save (multipart_file.cpp) writes the rest of the part's content to the file at `path` and returns its size. The
  // file is replaced when the part is whole, as FileReplacement of coir/file.h does it; until then, and after any
  // error, the old one stays and nothing is left behind. A full disk, or quota, is answered 507; other errors of the
  // file are the handler's to answer, 500 if it does not. Errors: also those of FileReplacement::begin, write and
  // commit.
  [[nodiscard]] std::expected<std::uint64_t, Error> save(const char* path,
                                                         std::optional<unsigned> mode = std::nullopt) noexcept;

 private:
  // piece waits for the next piece of the part's content, which stays where it is until the next call.
  std::expected<std::string_view, Error> piece() noexcept;
  std::expected<detail::MultipartParser::Event, Error> step() noexcept;
  std::unexpected<Error> refuse(std::uint16_t status) noexcept;

  Exchange& exchange_;
  detail::MultipartParser parser_;
  std::string_view left_;  // of a piece that read() did not take whole
  Error failed_{};         // what ended it
  bool in_part_ = false;
};

#if COIR_JSON

// A handler that takes JSON (json_content.cpp) and answers with JSON:
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

#endif

}  // namespace coir::http
