#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

// multipart_parser.cpp finds the boundaries, multipart_part.cpp reads the header of a part.
namespace coir::http {

// MultipartLimits bounds a form. Over one of them: 413. The form as a whole is bounded by Limits::max_body.
struct MultipartLimits {
  std::uint32_t max_parts = 32;
  std::uint32_t max_header_bytes = 1024;  // of one part, all lines together
  std::uint32_t max_name = 128;           // of a part's name, and of its file's
  std::uint64_t max_part_bytes = UINT64_MAX;
};

// Part is what stands in front of a part's content. Names are as they were sent, but for a backslash before a quote or
// a backslash; browsers send a quote as %22. They hold no control character, and a file's name no slash or backslash
// and is not "." or "..". A default view (data() == nullptr) means absent.
struct Part {
  std::string_view name;
  std::string_view file_name;     // present and empty: a field for a file where none was chosen
  std::string_view content_type;  // absent: text/plain
};

namespace detail {

// MultipartParser takes a form (multipart/form-data, RFC 7578) apart, in whatever pieces it arrives. It works in the
// caller's memory, of kMultipartMemory bytes at least:
//
//   for (;;) {
//     switch (parser.next()) {
//       case Event::more:     put bytes into parser.room() and call filled(count), or ended() when there are none
//       case Event::part:     parser.part() is valid until Event::part_end
//       case Event::content:  parser.content() is valid until the next call
//       case Event::part_end: the part is whole: the boundary behind it has been seen
//       case Event::end:      the form is whole, and so was its input
//       case Event::bad:      parser.status() is 400 or 413; nothing else comes
//
// How the bytes are cut changes the pieces of the content, and nothing else.
class MultipartParser {
 public:
  enum class Event : std::uint8_t { more, part, content, part_end, end, bad };

  MultipartParser(std::span<char> memory, const MultipartLimits& limits) noexcept : memory_(memory), limits_(limits) {}

  // begin takes the boundary from the request's Content-Type. Returns 0; 415: it is no form of this kind; 400: it has
  // no boundary, two, or one that is malformed or longer than 70 characters.
  [[nodiscard]] std::uint16_t begin(std::string_view content_type) noexcept;

  Event next() noexcept;

  // room is where the next bytes go, never empty after Event::more.
  std::span<char> room() noexcept;
  void filled(std::size_t bytes) noexcept { end_ += bytes; }
  void ended() noexcept { ended_ = true; }

  const Part& part() const noexcept { return part_; }
  std::string_view content() const noexcept { return content_; }
  std::uint16_t status() const noexcept { return status_; }

 private:
  enum class At : std::uint8_t { preamble, boundary, header, content, epilogue, end, bad };

  Event preamble() noexcept;
  Event boundary() noexcept;
  Event header() noexcept;
  Event content_piece() noexcept;
  Event epilogue() noexcept;
  Event bad(std::uint16_t status) noexcept;
  Event wants_more() noexcept { return ended_ ? bad(400) : Event::more; }
  std::string_view unread() const noexcept { return {memory_.data() + begin_, end_ - begin_}; }
  std::string_view delimiter() const noexcept { return {delimiter_, delimiter_size_}; }
  std::size_t before_delimiter() const noexcept;
  std::uint16_t read_fields(std::span<char> block) noexcept;
  std::uint16_t read_disposition(std::string_view value) noexcept;

  std::span<char> memory_;
  MultipartLimits limits_;
  std::size_t kept_ = 0;   // the header of the part under way, at the front
  std::size_t begin_ = 0;  // of what has not been read yet
  std::size_t end_ = 0;
  std::size_t seen_ = 0;  // of what has not been read yet, as far as the end of a header was looked for
  std::uint64_t part_bytes_ = 0;
  std::uint32_t parts_ = 0;
  std::uint16_t status_ = 0;
  std::uint8_t delimiter_size_ = 0;
  At at_ = At::preamble;
  bool in_part_ = false;
  bool ended_ = false;
  Part part_;
  std::string_view content_;
  char delimiter_[4 + 70];  // CRLF, two hyphens, the boundary
};

}  // namespace detail
}  // namespace coir::http
