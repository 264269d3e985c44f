#pragma once

// The head of a response, written into the caller's memory.
//
//   ResponseHead head(buffer);
//   head.start(200, "");
//   head.field("Content-Type", "text/plain");
//   head.content_length(6);
//   show(head.finish());

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace coir::http {

// reason_phrase returns the words for a status ("Not Found"), "Unknown" for one without.
std::string_view reason_phrase(int status) noexcept;

// write_decimal writes `value` (1 to 20 digits) and returns the end.
char* write_decimal(char* out, std::uint64_t value) noexcept;

// ResponseHead builds the head of a response in the caller's memory.
//
// No allocation, nothing is checked twice. When the memory is too small or a value could split the response, finish()
// returns an empty view: answer 500 instead. The version is always HTTP/1.1, whatever the client's (RFC 9112, 2.3).
class ResponseHead {
 public:
  explicit ResponseHead(std::span<char> memory) noexcept
      : begin_(memory.data()), at_(begin_), end_(begin_ + memory.size()) {}

  // start writes the status line and the Date line (CachedDate::line, may be empty). It begins anew if called again.
  void start(int status, std::string_view date_line) noexcept;

  // fixed copies whole lines the program was compiled with, "Name: value\r\n", unchecked.
  void fixed(std::string_view lines) noexcept { append(lines); }

  // field writes one line. `name` is the program's own; `value` may come from anywhere: a control character in it (HTAB
  // excepted) spoils the head.
  void field(std::string_view name, std::string_view value) noexcept;
  void field(std::string_view name, std::uint64_t value) noexcept;

  // content_length: never with 1xx or 204 (RFC 9110, 8.6). For HEAD, 304: the length a GET would have been answered
  // with.
  void content_length(std::uint64_t bytes) noexcept;

  // connection tells the client whether the connection stays open, in the words its version needs: nothing for a kept
  // HTTP/1.1 connection.
  void connection(bool keep_alive, int minor) noexcept;

  // lines returns what has been written so far, or an empty view when it did not fit or was spoilt. Without start()
  // these are header lines that may be kept and handed to fixed() later.
  std::string_view lines() const noexcept { return spoilt_ ? std::string_view() : std::string_view(begin_, at_); }

  // forget_lines has what follows lie where the lines so far are, which their owner has sent.
  void forget_lines() noexcept { at_ = begin_; }

  // finish writes the empty line and returns the whole head, or an empty view when it did not fit or was spoilt.
  [[nodiscard]] std::string_view finish() noexcept;

 private:
  void append(std::string_view text) noexcept {
    if (static_cast<std::size_t>(end_ - at_) < text.size()) return spoil();
    at_ = copy(at_, text);
  }

  // copy is memcpy for the short texts of a head, whose sizes the compiler does not know: two words that may overlap.
  static char* copy(char* out, std::string_view text) noexcept {
    const char* at = text.data();
    std::size_t left = text.size();
    for (; left > 16; left -= 16, at += 16, out += 16) std::memcpy(out, at, 16);
    if (left >= 8) {
      ends<8>(out, at, left);
    } else if (left >= 4) {
      ends<4>(out, at, left);
    } else {
      for (std::size_t i = 0; i < left; ++i) out[i] = at[i];
    }
    return out + left;
  }

  template <std::size_t kWord>
  static void ends(char* out, const char* at, std::size_t size) noexcept {
    std::memcpy(out, at, kWord);
    std::memcpy(out + size - kWord, at + size - kWord, kWord);
  }

  // spoil leaves no room, so that nothing is appended any more.
  void spoil() noexcept {
    spoilt_ = true;
    at_ = end_;
  }

  char* begin_;
  char* at_;
  char* end_;
  bool spoilt_ = false;
};

}  // namespace coir::http
