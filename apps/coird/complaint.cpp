#include "complaint.h"

#include <coir/net/log_line.h>
#include <coir/worker_stack.h>
#include <stdarg.h>
#include <stdio.h>

#include <algorithm>
#include <string_view>

namespace {

constinit bool g_serving = false;

}  // namespace

bool complain_of(const char* path, const char* what, const char* cure) noexcept {
  return coir::on_worker_stack([=] { return complain(cure, "%s: %s", path, what); });
}

void complain_without_waiting() noexcept {
  g_serving = true;
}

bool complain(const char* cure, const char* what, ...) noexcept {
  constexpr int kMost = 704;
  char line[kMost] = "coird: ";
  int size = 7;
  va_list arguments;
  va_start(arguments, what);
  // A complaint that is too long is cut: 256 bytes are kept for its cure.
  size = std::min(size + vsnprintf(line + size, kMost - 256 - size, what, arguments), kMost - 257);
  va_end(arguments);
  size = std::min(size + snprintf(line + size, static_cast<std::size_t>(kMost - size), " (%s)\n", cure), kMost - 1);
  const std::string_view text(line, static_cast<std::size_t>(size));
  if (g_serving) {
    coir::log_line(text);
  } else {
    fwrite(text.data(), 1, text.size(), stderr);
  }
  return false;
}
