#include <coir/http/wire/chunked.h>

#include <algorithm>
#include <cstring>

#include "http/text/characters.h"

namespace coir::http {

// At is the place in the grammar where the next byte is read. The first is where a body begins.
enum class ChunkedDecoder::At : std::uint8_t {
  size,
  size_blanks,
  extension,
  extension_name,
  extension_name_end,
  extension_equals,
  extension_value,
  extension_quoted,
  extension_escape,
  extension_quoted_end,
  extension_end,
  size_lf,
  content,
  content_cr,
  content_lf,
  trailer,
  trailer_name,
  trailer_value,
  trailer_lf,
  last_lf,
  end
};

ChunkedResult ChunkedDecoder::decode(std::span<char> buffer, const ChunkedLimits& limits,
                                     std::span<char> trailers) noexcept {
  ChunkedResult result;
  while (result.consumed < buffer.size() && at_ != At::end) {
    if (at_ == At::content) {
      const auto here = static_cast<std::size_t>(std::min<std::uint64_t>(left_, buffer.size() - result.consumed));
      std::memmove(&buffer[result.data_bytes], &buffer[result.consumed], here);
      result.data_bytes += here;
      result.consumed += here;
      total_ += here;
      left_ -= here;
      if (left_ == 0) at_ = At::content_cr;
      continue;
    }
    result.status = framing_byte(buffer[result.consumed++], limits, trailers);
    if (result.status != 0) {
      result.state = ChunkedState::bad;
      return result;
    }
  }
  if (at_ == At::end) result.state = ChunkedState::done;
  return result;
}

// framing_byte reads a byte that is not content and returns the status it deserves, 0 when it is in order.
std::uint16_t ChunkedDecoder::framing_byte(char c, const ChunkedLimits& limits, std::span<char> trailers) noexcept {
  const auto expect = [&](char wanted, At next) -> std::uint16_t {
    at_ = next;
    return c == wanted ? 0 : 400;
  };
  switch (at_) {
    case At::size:
      if (const int digit = hex_value(c); digit >= 0) {
        if (++digits_ > 16) return 400;
        left_ = left_ * 16 + static_cast<unsigned>(digit);
        return 0;
      }
      if (digits_ == 0) return 400;
      [[fallthrough]];
    case At::size_blanks:
      if (is_space(c) && limits.allows_blanks) {
        at_ = At::size_blanks;
        return ++extension_bytes_ > limits.max_extension_bytes ? 400 : 0;
      }
      if (left_ > limits.max_body - std::min(total_, limits.max_body)) return 413;
      digits_ = 0;
      if (c == ';') {
        at_ = At::extension;
        return 0;
      }
      return expect('\r', At::size_lf);
    case At::extension:
    case At::extension_name:
    case At::extension_name_end:
    case At::extension_equals:
    case At::extension_value:
    case At::extension_quoted:
    case At::extension_escape:
    case At::extension_quoted_end:
    case At::extension_end:
      if (c != '\r' && ++extension_bytes_ > limits.max_extension_bytes) return 400;
      return extension_byte(c) ? 0 : 400;
    case At::size_lf:
      if (limits.extensions_count_apart) extension_bytes_ = 0;
      return expect('\n', left_ == 0 ? At::trailer : At::content);
    case At::content_cr:
      return expect('\r', At::content_lf);
    case At::content_lf:
      return expect('\n', At::size);
    case At::trailer:
      if (c == '\r') {
        at_ = At::last_lf;
        return 0;
      }
      at_ = At::trailer_name;
      if (!is(c, kToken)) return 400;
      break;
    case At::trailer_name:
      if (c == ':') {
        at_ = At::trailer_value;
      } else if (!is(c, kToken)) {
        return 400;
      }
      break;
    case At::trailer_value:
      if (c == '\r') {
        at_ = At::trailer_lf;
      } else if (is(c, kFieldControl)) {
        return 400;
      }
      break;
    case At::trailer_lf:
      return expect('\n', At::trailer);
    case At::last_lf:
      return expect('\n', At::end);
    case At::content:
    case At::end:
      return 400;
  }
  if (!trailers.empty()) {
    if (trailer_bytes_ == trailers.size()) return 431;
    trailers[trailer_bytes_] = c;
  }
  return ++trailer_bytes_ > limits.max_trailer_bytes ? 431 : 0;
}

// extension_byte reads a byte behind the semicolon (RFC 9112, 7.1.1): a name, and maybe a value, which is a token or a
// quoted string, with "bad" white space around semicolons and equals signs. False: it is outside the grammar.
bool ChunkedDecoder::extension_byte(char c) noexcept {
  const auto go = [this](At next) {
    at_ = next;
    return true;
  };
  const bool space = c == ' ' || c == '\t';
  switch (at_) {
    case At::extension:
      return space || (is(c, kToken) && go(At::extension_name));
    case At::extension_name:
      if (is(c, kToken)) return true;
      if (space) return go(At::extension_name_end);
      [[fallthrough]];
    case At::extension_name_end:
      if (space) return true;
      if (c == '=') return go(At::extension_equals);
      if (c == ';') return go(At::extension);
      return c == '\r' && at_ == At::extension_name && go(At::size_lf);
    case At::extension_equals:
      if (space) return true;
      return c == '"' ? go(At::extension_quoted) : is(c, kToken) && go(At::extension_value);
    case At::extension_quoted:
      if (c == '"') return go(At::extension_quoted_end);
      if (c == '\\') return go(At::extension_escape);
      return !is(c, kFieldControl);
    case At::extension_escape:
      return !is(c, kFieldControl) && go(At::extension_quoted);
    case At::extension_value:
      if (is(c, kToken)) return true;
      [[fallthrough]];
    case At::extension_quoted_end:
      if (c == '\r') return go(At::size_lf);
      [[fallthrough]];
    case At::extension_end:
      if (space) return go(At::extension_end);
      return c == ';' && go(At::extension);
    default:
      return false;
  }
}

std::string_view write_chunk_size(std::uint64_t size, std::span<char, 18> out) noexcept {
  char* const end = out.data() + out.size();
  char* at = end;
  *--at = '\n';
  *--at = '\r';
  do {
    *--at = "0123456789abcdef"[size & 15];
    size >>= 4;
  } while (size != 0);
  return {at, end};
}

}  // namespace coir::http
