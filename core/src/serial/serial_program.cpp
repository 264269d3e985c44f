#include <coir/program.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace coir::detail {

// environment_fits looks at the one variable that could ask for concurrency. COIR_STACK_KB and COIR_SEED have nothing
// to act on here and are left alone, so that one environment serves every build.
bool environment_fits() noexcept {
  const char* const workers = getenv("COIR_WORKERS");
  if (workers == nullptr || strcmp(workers, "1") == 0) return true;
  constexpr char kLine[] = "coir: COIR_WORKERS: this build has no fibers and does one thing at a time: 1, or unset\n";
  static_cast<void>(!::write(STDERR_FILENO, kLine, sizeof kLine - 1));
  return false;
}

}  // namespace coir::detail
