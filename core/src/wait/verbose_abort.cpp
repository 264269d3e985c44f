// What the headers of libc++ call where the library would throw (std::expected::value on an error, string_view::substr
// past the end), and where a hardened build finds a broken promise: a programming error, which ends the process with
// the line of coir/detail/fatal.h. Weak, so that a program that does link a C++ library keeps that library's.

#include <version>

#if defined(_LIBCPP_VERSION)
#include <coir/detail/fatal.h>
#include <coir/format.h>
#include <stdarg.h>

#include <__verbose_abort>
#include <cstdint>

// The format is a sentence of libc++'s with %s in it at most. No printf: that wants more stack than a small fiber has.
__attribute__((weak)) void std::__libcpp_verbose_abort(const char* format, ...) {
  char room[256];
  coir::Formatter out(std::span(room).first(sizeof room - 1));
  va_list arguments;
  va_start(arguments, format);
  for (const char* at = format; *at != '\0'; ++at) {
    if (at[0] == '%' && at[1] == 's') {
      out.add(static_cast<const char*>(va_arg(arguments, const char*)));
      ++at;
    } else if (*at != '\n') {
      out.add(*at);
    }
  }
  va_end(arguments);
  // The code inlined there is the caller's own, as a rule: llvm-symbolizer names its line.
  out.add(", called at 0x", coir::hex(reinterpret_cast<std::uintptr_t>(__builtin_return_address(0))));
  const std::string_view text = out.text();
  room[text.size()] = '\0';
  coir::detail::fatal(room);
}
#endif
