// fatal, of coir/detail/fatal.h, where there is no fiber to name.
#include <coir/detail/fatal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/line.h"

namespace coir::detail {

void fatal(const char* what) noexcept {
  Line line;
  line.text("coir: ").text(what).text("\n").send(STDERR_FILENO);
  abort();
}

void fatal(const char* what, const std::source_location& where) noexcept {
  Line line;
  line.text("coir: ").text(what).text(" (at ").place(where).text(")\n").send(STDERR_FILENO);
  abort();
}

}  // namespace coir::detail
