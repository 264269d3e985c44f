#pragma once

#include <coir/deadline.h>
#include <coir/error.h>
#include <coir/http/detail/multipart_parser.h>
#include <coir/http/exchange.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string_view>

namespace coir::http {

// Multipart reads a browser's form with files (multipart/form-data) part by part, however large, in the memory that it
// is given: exchange.scratch() will do.
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

}  // namespace coir::http
