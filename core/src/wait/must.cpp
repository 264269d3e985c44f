#include <coir/must.h>

#include <coir/detail/fatal.h>
#include <coir/format.h>

namespace coir::detail {

void end_by(const Error& error, const std::source_location& where) noexcept {
  char text[160];
  Formatter out(std::span<char>(text).first(sizeof text - 1));
  out.add("what must succeed has failed: ", describe(error));
  text[out.text().size()] = '\0';
  fatal(text, where);
}

}  // namespace coir::detail
