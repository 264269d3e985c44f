#include <coir/http/wire/response.h>

#include "http/text/characters.h"

namespace coir::http {
namespace {

bool holds_control(std::string_view text) noexcept {
  for (const char c : text) {
    if (is(c, kFieldControl)) return true;
  }
  return false;
}

// may_hold_control looks at eight bytes at once: one under 0x20 or equal to 0x7f sets its highest bit in the sum. HTAB
// does too, so a hit has to be looked at again.
bool may_hold_control(std::uint64_t word) noexcept {
  constexpr std::uint64_t ones = 0x0101010101010101;
  const std::uint64_t is_delete = word ^ (ones * 0x7f);
  return ((((word - ones * 0x20) & ~word) | ((is_delete - ones) & ~is_delete)) & (ones * 0x80)) != 0;
}

// copy_checked copies a field value and returns its end, nullptr when it holds what no value may. Values are short:
// words are cheaper than a call, and the last word may overlap the one before it.
char* copy_checked(char* out, std::string_view value) noexcept {
  const char* at = value.data();
  char* const end = out + value.size();
  if (value.size() < 8) {
    for (; out != end; ++at, ++out) {
      if (is(*at, kFieldControl)) return nullptr;
      *out = *at;
    }
    return end;
  }
  std::uint64_t suspicious = 0;
  const auto copy_word = [&] {
    std::uint64_t word;
    std::memcpy(&word, at, sizeof word);
    std::memcpy(out, &word, sizeof word);
    suspicious |= may_hold_control(word);
  };
  for (; end - out >= 8; at += 8, out += 8) copy_word();
  at -= 8 - (end - out);
  out = end - 8;
  copy_word();
  return suspicious != 0 && holds_control(value) ? nullptr : end;
}

}  // namespace

void ResponseHead::start(int status, std::string_view date_line) noexcept {
  at_ = begin_;
  spoilt_ = false;
  if (status == 200) [[likely]] {
    append("HTTP/1.1 200 OK\r\n");
  } else {
    append("HTTP/1.1 ");
    const char digits[] = {static_cast<char>('0' + status / 100), static_cast<char>('0' + status / 10 % 10),
                           static_cast<char>('0' + status % 10), ' '};
    append({digits, sizeof digits});
    append(reason_phrase(status));
    append("\r\n");
  }
  append(date_line);
}

void ResponseHead::field(std::string_view name, std::string_view value) noexcept {
  if (static_cast<std::size_t>(end_ - at_) < name.size() + value.size() + 4) return spoil();
  append(name);
  append(": ");
  char* const end = copy_checked(at_, value);
  if (end == nullptr) return spoil();
  at_ = end;
  append("\r\n");
}

void ResponseHead::field(std::string_view name, std::uint64_t value) noexcept {
  char digits[20];
  append(name);
  append(": ");
  append({digits, write_decimal(digits, value)});
  append("\r\n");
}

void ResponseHead::content_length(std::uint64_t bytes) noexcept {
  constexpr std::string_view name = "Content-Length: ";
  constexpr std::size_t longest = name.size() + 20 + 2;
  if (static_cast<std::size_t>(end_ - at_) < longest) return spoil();
  std::memcpy(at_, name.data(), name.size());
  at_ = write_decimal(at_ + name.size(), bytes);
  *at_++ = '\r';
  *at_++ = '\n';
}

void ResponseHead::connection(bool keep_alive, int minor) noexcept {
  if (!keep_alive) {
    append("Connection: close\r\n");
  } else if (minor == 0) {
    append("Connection: keep-alive\r\n");
  }
}

std::string_view ResponseHead::finish() noexcept {
  append("\r\n");
  if (spoilt_) return {};
  return {begin_, at_};
}

char* write_decimal(char* out, std::uint64_t value) noexcept {
  char* end = out + 1;
  for (std::uint64_t rest = value; rest >= 10; rest /= 10) ++end;
  char* at = end;
  do {
    *--at = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  return end;
}

std::string_view reason_phrase(int status) noexcept {
  switch (status) {
    case 100:
      return "Continue";
    case 101:
      return "Switching Protocols";
    case 103:
      return "Early Hints";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 411:
      return "Length Required";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 416:
      return "Range Not Satisfiable";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 426:
      return "Upgrade Required";
    case 428:
      return "Precondition Required";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    case 507:
      return "Insufficient Storage";
    case 508:
      return "Loop Detected";
    default:
      return "Unknown";
  }
}

}  // namespace coir::http
