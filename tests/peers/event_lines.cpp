// This program shows event_oracle.mjs how EventParser reads streams. Each line of standard input is a stream, in
// hexadecimal, and the sizes of the pieces that it arrives in:
//
//   646174613a780a0a 3 1 2          ->   [{"type":"","data":"x","id":""},null]
//
// The last element is the retry in force, null if there is none. The bytes after the last size come in one piece.

#include <coir/json_writer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "stream/event_parser.h"

using namespace coir;

namespace {

struct Output {
  std::expected<void, Error> write(std::string_view text) noexcept {
    fwrite(text.data(), 1, text.size(), stdout);
    return {};
  }
};

int nibble(char c) {
  return c <= '9' ? c - '0' : c - 'a' + 10;
}

}  // namespace

int main() {
  static char line[65'536];
  static char stream[32'768];
  static char buffer[32'768];
  while (fgets(line, sizeof line, stdin) != nullptr) {
    std::size_t size = 0;
    char* at = line;
    for (; *at != ' ' && *at != '\n'; at += 2) stream[size++] = static_cast<char>(nibble(at[0]) << 4 | nibble(at[1]));
    http::EventParser parser;
    Output output;
    JsonWriter out(output);
    out.array();
    std::string_view rest(stream, size);
    while (!rest.empty()) {
      const unsigned long wanted = strtoul(at, &at, 10);
      const std::size_t piece = wanted == 0 ? rest.size() : std::min<std::size_t>(wanted, rest.size());
      std::string_view bytes(rest.data(), piece);
      for (;;) {
        const auto parsed = parser.parse(bytes, buffer, sizeof buffer);
        if (parsed.state == http::EventState::limit) return 1;
        if (parsed.state == http::EventState::more) break;
        out.object()
            .member("type", parsed.event.type)
            .member("data", parsed.event.data)
            .member("id", parsed.event.id)
            .end();
      }
      rest.remove_prefix(piece);
    }
    const auto retry = parser.retry_ms();
    retry ? out.value(*retry) : out.null();
    if (!out.end().finish()) return 1;
    putchar('\n');
  }
}
