// The headers of libc++ call this where the library would throw (std::expected::value on an error, string_view::substr
// past the end): a programming error, which stops the program with one line. Weak, so that a program that does link a
// C++ library keeps that library's.

#include <version>

#if defined(_LIBCPP_VERSION)
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <__verbose_abort>

__attribute__((weak)) void std::__libcpp_verbose_abort(char const* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vdprintf(2, format, arguments);
  va_end(arguments);
  abort();
}
#endif
