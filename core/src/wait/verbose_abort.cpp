// The function that a C++ library's headers call where the library would throw (std::expected::value on an error,
// string_view::substr past the end), and where a hardened build finds a broken promise: a programming error, which ends
// the process with the line of coir/detail/fatal.h. Weak, so that a program that does link a C++ library keeps that
// library's.

#include <version>

#if defined(_LIBCPP_VERSION) || defined(__GLIBCXX__)
#include <coir/detail/fatal.h>
#include <coir/error.h>
#include <coir/format.h>
#include <stdarg.h>

#include <cstdint>

#if defined(_LIBCPP_VERSION)
#include <__verbose_abort>
#define COIR_CALLED_BY_HEADERS __libcpp_verbose_abort
#else
#include <bits/functexcept.h>
#define COIR_CALLED_BY_HEADERS __throw_out_of_range_fmt
#endif

namespace {

// end ends the process by the text in `out`, which has room for its end, and the caller's address: the code inlined there
// is the caller's own, as a rule, and llvm-symbolizer names its line.
[[noreturn]] void end(coir::Formatter& out, std::span<char> room, void* caller) {
  out.add(", called at 0x", coir::hex(reinterpret_cast<std::uintptr_t>(caller)));
  room[out.text().size()] = '\0';
  coir::detail::fatal(room.data());
}

// end_by ends the process by a sentence of the library's with "%s" in it at most; "%zu" of GCC's stays as it is. No printf:
// that wants more stack than a small fiber has.
[[noreturn]] void end_by(const char* format, va_list arguments, void* caller) {
  char room[256];
  coir::Formatter out(std::span<char>(room).first(sizeof room - 1));
  for (const char* at = format; *at != '\0'; ++at) {
    if (at[0] == '%' && at[1] == 's') {
      out.add(static_cast<const char*>(va_arg(arguments, const char*)));
      ++at;
    } else if (*at != '\n') {
      out.add(*at);
    }
  }
  end(out, room, caller);
}

}  // namespace

__attribute__((weak)) void std::COIR_CALLED_BY_HEADERS(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  end_by(format, arguments, __builtin_return_address(0));
}

#if defined(_LIBCPP_VERSION) && !defined(__cpp_exceptions)
void coir::detail::end_by_value(const Error& error) noexcept {
  char room[256];
  Formatter out(std::span<char>(room).first(sizeof room - 1));
  out.add("value() of an error: ", describe(error));
  end(out, room, __builtin_return_address(0));
}
#endif
#endif
