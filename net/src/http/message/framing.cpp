#include "http/message/framing.h"

#include <coir/http/wire/request.h>

#include "http/text/characters.h"

namespace coir::http {

bool read_content_length(std::string_view value, std::uint64_t& length) noexcept {
  if (value.empty()) return false;
  std::uint64_t number = 0;
  for (const char c : value) {
    if (!is_digit(c)) return false;
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (number > (std::uint64_t{INT64_MAX} - digit) / 10) return false;
    number = number * 10 + digit;
  }
  length = number;
  return true;
}

void TransferCodings::add_line(std::string_view value) noexcept {
  ++lines_;
  for (bool more = true; more;) {
    const std::size_t comma = value.find(',');
    more = comma != std::string_view::npos;
    const std::string_view coding = trim(until(value, ','));
    if (more) value.remove_prefix(comma + 1);
    chunked_last_ = equals_ignoring_case(coding, "chunked");
    if (coding.empty() || !is(coding[0], kToken)) malformed_ = true;
    if (chunked_last_) {
      ++chunked_;
    } else {
      ++others_;
    }
  }
}

std::uint16_t TransferCodings::status() const noexcept {
  if (malformed_ || chunked_ != 1 || !chunked_last_) return 400;
  return others_ == 0 ? 0 : 501;
}

}  // namespace coir::http
