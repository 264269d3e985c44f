#pragma once

#include <cstdint>
#include <string_view>

namespace coir::http {

// read_content_length reads the value of Content-Length: digits and nothing else, at most INT64_MAX. A list, a sign, an
// empty value and a greater number are false: another reader of the same bytes might see another number there.
bool read_content_length(std::string_view value, std::uint64_t& length) noexcept;

// TransferCodings reads Transfer-Encoding, which may come in several lines, and judges it as a whole.
class TransferCodings {
 public:
  void add_line(std::string_view value) noexcept;

  bool any() const noexcept { return lines_ != 0; }

  // status returns 0 when the codings are exactly one `chunked`; 501 when other codings precede a final `chunked`,
  // which this server does not take off; 400 when the end of the message cannot be found (chunked is missing, not last,
  // or there twice).
  std::uint16_t status() const noexcept;

 private:
  unsigned lines_ = 0;
  unsigned chunked_ = 0;
  unsigned others_ = 0;
  bool chunked_last_ = false;
  bool malformed_ = false;
};

}  // namespace coir::http
