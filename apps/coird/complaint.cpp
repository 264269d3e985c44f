#include "complaint.h"

#include <stdarg.h>
#include <stdio.h>

bool complain(const char* cure, const char* what, ...) noexcept {
  va_list arguments;
  va_start(arguments, what);
  fputs("coird: ", stderr);
  vfprintf(stderr, what, arguments);
  fprintf(stderr, " (%s)\n", cure);
  va_end(arguments);
  return false;
}
