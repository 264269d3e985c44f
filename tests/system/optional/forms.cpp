#include <coir/http/content.h>
#include <coir/http/wire/cookies.h>

using namespace coir::http;

extern "C" void use_forms(Exchange& exchange) {
  char memory[Multipart::kLeastMemory];
  const auto pairs = read_form(exchange, memory);
  if (pairs) return exchange.respond(200, "text/plain", *pairs);
  Multipart form(exchange, memory);
  while (const auto part = form.next()) {
    if (!part->file_name.empty()) static_cast<void>(form.save("/tmp/upload"));
    char text[100];
    static_cast<void>(form.read_all(text));
  }
}
