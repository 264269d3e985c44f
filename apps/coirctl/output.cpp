#include "output.h"

#include <unistd.h>

namespace {

constinit bool g_written = true;  // standard output has taken everything so far

}  // namespace

void write_text(std::string_view text) noexcept {
  while (!text.empty() && g_written) {
    const ssize_t wrote = ::write(STDOUT_FILENO, text.data(), text.size());
    g_written = wrote > 0;
    if (g_written) text.remove_prefix(static_cast<std::size_t>(wrote));
  }
}

bool all_written() noexcept {
  return g_written;
}
