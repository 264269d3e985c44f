#include "state.h"

#include <coir/config.h>

#if COIR_TLS

#include <coir/file.h>
#include <coir/net/randomness.h>
#include <coir/sum.h>
#include <coir/tls.h>
#include <fcntl.h>
#include <linux/random.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "complaint.h"
#include "in_folder.h"
#include "state_file.h"

namespace {

constexpr std::size_t kSeedBytes = 64;

// The date of the seed that recall_state has found: the latest time of an earlier run.
constinit timespec g_seen{};

// stir gives the kernel a seed, which counts as entropy where this process may say so.
void stir(std::string_view seed) noexcept {
  const int device = ::open("/dev/urandom", O_WRONLY | O_CLOEXEC);
  if (device < 0) return;
  // As rand_pool_info, with its array.
  struct {
    int entropy_bits = kSeedBytes * 8;
    int bytes = kSeedBytes;
    unsigned char seed[kSeedBytes];
  } credit;
  memcpy(credit.seed, seed.data(), kSeedBytes);
  if (::ioctl(device, RNDADDENTROPY, &credit) != 0) static_cast<void>(!::write(device, seed.data(), kSeedBytes));
  explicit_bzero(&credit, sizeof credit);
  ::close(device);
}

}  // namespace

void recall_state(const char* folder) noexcept {
  const InFolder path(folder, "seed");
  struct stat status;
  const auto file = open_state(path.text);
  const bool there = file && ::fstat(file->fd(), &status) == 0;
  const bool open_to_others = there && (status.st_mode & 077) != 0;
  // A seed that others may know is none, and a date that others may have set tells nothing.
  if (there && (status.st_mode & 022) == 0) {
    g_seen = status.st_mtim;
    coir::time_was_seen(g_seen.tv_sec);
  }
  if (open_to_others) {
    warn({path.text, ": others could read it: it is not used"});
    ::unlink(path.text);
  }
  if (coir::randomness_ready()) return;
  char room[kSeedBytes + coir::kSumLineBytes + 1];
  const auto seed = read_state(path.text, room, kSeedBytes);
  // Used once: a board that loses its power before it leaves another must not start twice from the same.
  if (seed && seed->size() == kSeedBytes && coir::remove_file(path.text)) stir(*seed);
  explicit_bzero(room, sizeof room);
}

bool wait_for_randomness() noexcept {
  if (coir::randomness_ready()) return true;
  say({"waiting for the kernel's random numbers"});
  const auto ready = coir::await_randomness(coir::Deadline::after(std::chrono::seconds(20)));
  if (!ready && ready.error() == coir::ErrorCode::timed_out)
    warn({"the kernel has no random numbers after 20 seconds"});
  return ready.has_value();
}

void keep_state(const char* folder) noexcept {
  const InFolder path(folder, "seed");
  char seed[kSeedBytes];
  if (::getrandom(seed, sizeof seed, GRND_NONBLOCK) != sizeof seed) return;
  // A clock that is not set must not take back the time of an earlier run, whose seed may be used up.
  const bool earlier = !coir::time_valid() && g_seen.tv_sec != 0;
  const auto kept = write_state(path.text, seed, earlier ? std::optional(g_seen) : std::nullopt);
  if (!kept) tell_unkept(path.text, kept.error());
  explicit_bzero(seed, sizeof seed);
}

#endif
