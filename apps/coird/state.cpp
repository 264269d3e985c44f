#include "state.h"

#include <coir/config.h>

#if COIR_TLS

#include <coir/atomic.h>
#include <coir/file.h>
#include <coir/net/log_line.h>
#include <coir/net/randomness.h>
#include <coir/sum.h>
#include <coir/tls.h>
#include <fcntl.h>
#include <linux/random.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include "complaint.h"
#include "in_folder.h"
#include "state_file.h"

namespace {

constexpr std::size_t kSeedBytes = 64;

// The date of the seed that recall_state has found: the latest time of an earlier run.
constinit timespec g_seen{};
// The seed of this run has the date of a clock that was set.
constinit coir::Atomic<bool> g_dated{false};

// A later date than this after the build is that of a clock that was wrong, such as 2099: programs are replaced sooner. As a
// floor it would have every certificate expire, and without a set clock each run would pass it on to the next.
constexpr std::int64_t kLongestUseSeconds = std::int64_t{10} * 365 * 86'400;

// disciplined tells whether somebody keeps the clock right, such as ntpd.
bool disciplined() noexcept {
  timex state{};
  return ::adjtimex(&state) >= 0 && (state.status & STA_UNSYNC) == 0;
}

// clock_is_set tells whether the clock is past the floor, or somebody keeps it right. Then dates of earlier runs do not count.
bool clock_is_set() noexcept {
  if (!coir::time_valid() && disciplined()) coir::forget_times_seen();
  return coir::time_valid();
}

// DateText is a date for a line, as the log writes it.
struct DateText {
  explicit DateText(time_t seconds) noexcept : text(coir::LogRecord{.unix_seconds = seconds}.time(room)) {}

  char room[coir::LogRecord::kTimeBytes];
  std::string_view text;
};

// see takes the date of the seed for a time that has passed. A clock that is disciplined knows better.
void see(const char* path, const timespec& date) noexcept {
  if (disciplined()) return;
  if (date.tv_sec <= coir::time_of_build() + kLongestUseSeconds) {
    g_seen = date;
    coir::time_was_seen(date.tv_sec);
  } else if (date.tv_sec > ::time(nullptr)) {
    warn({path, ": its date, ", DateText(date.tv_sec).text,
          ", is over ten years after coird's build: it is left out, and the file dated anew; set the clock if it is "
          "wrong"});
  }
}

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
  if (there && (status.st_mode & 022) == 0) see(path.text, status.st_mtim);
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

void tell_clock(const char* folder) noexcept {
  if (coir::time_valid()) return;
  if (g_seen.tv_sec <= coir::time_of_build())
    return warn({"the clock is not set; certificates are judged by the time of coird's build"});
  warn({"the clock is earlier than ", DateText(g_seen.tv_sec).text, ", the date of ", InFolder(folder, "seed").text,
        ", by which certificates are judged; set the clock, or remove the file"});
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
  const bool set = clock_is_set();
  const bool earlier = !set && g_seen.tv_sec != 0;
  g_dated.store(set);
  const auto kept = write_state(path.text, seed, earlier ? std::optional(g_seen) : std::nullopt);
  if (!kept) tell_unkept(path.text, kept.error());
  explicit_bzero(seed, sizeof seed);
}

bool date_state(const char* folder) noexcept {
  if (!g_dated.load() && clock_is_set()) keep_state(folder);
  return g_dated.load();
}

#endif
