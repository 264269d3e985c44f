#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string_view>

#include <coir/format.h>

namespace coir {

// Line is one line of a report with the room for it: written from signal handlers and on small stacks. A line that is
// too long is cut, as Formatter says.
class Line {
 public:
  Line() noexcept = default;
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  // add takes any part of coir/format.h; the others name the commonest.
  template <class... Parts>
  Line& add(const Parts&... parts) noexcept {
    out_.add(parts...);
    return *this;
  }
  Line& text(const char* s) noexcept { return add(s); }
  Line& number(std::uint64_t value) noexcept { return add(value); }
  Line& address(std::uint64_t value) noexcept { return add("0x", hex(value)); }
  // place writes "FILE:LINE".
  Line& place(const std::source_location& where) noexcept { return add(where.file_name(), ":", where.line()); }
  // seconds writes 3,210,000,000 ns as "3.21".
  Line& seconds(std::int64_t ns) noexcept { return add(fixed(ns / 10'000'000, 2)); }

  // view is the line as it will be sent.
  std::string_view view() noexcept { return out_.text(); }

  // send writes the line with one system call; it always ends with a newline.
  void send(int fd) noexcept {
    const std::string_view line = view();
    [[maybe_unused]] const ssize_t n = write(fd, line.data(), line.size());
    out_ = Formatter(buffer_);
  }

 private:
  char buffer_[512];
  Formatter out_{buffer_};
};

}  // namespace coir
