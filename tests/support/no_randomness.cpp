#include "no_randomness.h"

#include <errno.h>
#include <sys/random.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>

namespace coir::test {
namespace {

std::atomic<Entropy> g_entropy{Entropy::enough};

}  // namespace

void set_entropy(Entropy entropy) noexcept {
  g_entropy = entropy;
}

extern "C" {

ssize_t __real_getrandom(void* into, std::size_t bytes, unsigned flags);

ssize_t __wrap_getrandom(void* into, std::size_t bytes, unsigned flags) {
  if ((flags & GRND_NONBLOCK) != 0 && g_entropy != Entropy::enough) {
    errno = EAGAIN;
    return -1;
  }
  for (;;) {
    auto yet = Entropy::none_yet;
    if (g_entropy.compare_exchange_strong(yet, Entropy::enough) || yet == Entropy::enough) break;
    if (usleep(1000) != 0) return -1;  // a signal
  }
  return __real_getrandom(into, bytes, flags);
}
}

}  // namespace coir::test
