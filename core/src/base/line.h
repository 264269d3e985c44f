#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <source_location>

namespace coir {

// Line collects one line of a report without stdio, for it is written from signal handlers and on small stacks. What
// does not fit is cut off. Its functions are not inlined: no report is in a hurry, and there are many.
class Line {
 public:
  // A null text is a question mark: whoever it is read from may have ended meanwhile.
  [[gnu::noinline]] Line& text(const char* s) noexcept {
    if (s == nullptr) s = "?";
    while (*s != '\0' && used_ < sizeof buffer_) buffer_[used_++] = *s++;
    return *this;
  }
  [[gnu::noinline]] Line& number(std::uint64_t value, unsigned base = 10) noexcept {
    char digits[20];
    std::size_t count = 0;
    do {
      digits[count++] = "0123456789abcdef"[value % base];
      value /= base;
    } while (value != 0);
    while (count > 0 && used_ < sizeof buffer_) buffer_[used_++] = digits[--count];
    return *this;
  }
  Line& address(std::uint64_t value) noexcept { return text("0x").number(value, 16); }
  // place writes "FILE:LINE".
  Line& place(const std::source_location& where) noexcept {
    return text(where.file_name()).text(":").number(where.line());
  }
  // seconds writes 3,210,000,000 ns as "3.21".
  Line& seconds(std::int64_t ns) noexcept {
    const auto hundredths = static_cast<std::uint64_t>(ns) / 10'000'000;
    number(hundredths / 100).text(".");
    return (hundredths % 100 < 10 ? text("0") : *this).number(hundredths % 100);
  }

  // send writes the line, of which the end is always a new line, in one piece.
  void send(int fd) noexcept {
    if (used_ == sizeof buffer_) buffer_[sizeof buffer_ - 1] = '\n';
    [[maybe_unused]] const ssize_t n = write(fd, buffer_, used_);
    used_ = 0;
  }

 private:
  char buffer_[512];
  std::size_t used_ = 0;
};

}  // namespace coir
