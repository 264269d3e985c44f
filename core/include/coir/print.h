#pragma once

// Text to standard output, on small stacks.
//
//   const int millivolts = 3300;
//   coir::print("sensor ", name, ": ", coir::fixed(millivolts, 3), " V\n");

#include <coir/format.h>

#include <cstddef>
#include <string_view>
#include <type_traits>

namespace coir {

// print writes text to standard output, made of parts as coir/format.h has them.
//
// It fits on the stack of a fiber of 8 KB, of which it takes less than 1 KB; the C library's printf takes 9 KB. One
// text is written whole, whatever its length. Several parts make at most kPrintedBytes; format tells how a longer text
// is cut. A line goes out by one system call, so that those of several threads do not mix. Nothing is kept back.
//
// It blocks the thread while whoever reads standard output leaves no room: a server logs by log_line of
// coir/net/log_line.h. False: not all of it could be written. Any fiber or thread, a signal handler too.
inline constexpr std::size_t kPrintedBytes = 512;

bool print(std::string_view text) noexcept;
inline bool print(const char* text) noexcept {
  return print(std::string_view(text != nullptr ? text : "?"));
}

template <class First, class Second, class... Parts>
bool print(const First& first, const Second& second, const Parts&... parts) noexcept {
  char line[kPrintedBytes];
  return print(format(line, first, second, parts...));
}

template <class Part>
  requires(!std::is_convertible_v<const Part&, std::string_view>)
bool print(const Part& part) noexcept {
  return print(part, std::string_view());
}

}  // namespace coir
