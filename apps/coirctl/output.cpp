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

void add_visible(coir::Formatter& out, std::string_view text, bool lines) noexcept {
  for (const char each : text) {
    const auto byte = static_cast<unsigned char>(each);
    if ((byte < 0x20 && !(lines && each == '\n')) || byte == 0x7f) {
      out.add("\\x", coir::hex(byte, 2));
    } else {
      out.add(each);
    }
  }
}
