#include <coir/port/watchdog_device.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/watchdog.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace coir::port {

namespace {

// ask_to_stop asks the kernel to stop the timer for a moment: with nowayout it refuses. sysfs tells of nowayout only where
// the kernel has WATCHDOG_SYSFS. Returns errno of a timer that does not go on.
int ask_to_stop(int fd, bool& refuses) noexcept {
  int order = WDIOS_DISABLECARD;
  if (ioctl(fd, WDIOC_SETOPTIONS, &order) != 0) return refuses = errno == EBUSY, 0;
  order = WDIOS_ENABLECARD;
  return ioctl(fd, WDIOC_SETOPTIONS, &order) == 0 ? 0 : errno;
}

}  // namespace

void WatchdogDevice::ask(int timeout_s) noexcept {
  watchdog_info info{};
  if (ioctl(fd_, WDIOC_GETSUPPORT, &info) == 0) {
    memcpy(facts_.identity, info.identity, sizeof info.identity);
    facts_.stoppable = (info.options & WDIOF_MAGICCLOSE) != 0;
  } else {
    facts_.stoppable = true;  // it does not tell
  }
  int status = 0;
  facts_.bit = ioctl(fd_, WDIOC_GETBOOTSTATUS, &status) == 0 && (status & WDIOF_CARDRESET) != 0;
  // If a driver cannot set the time, or refuses this one, its own holds.
  int set = timeout_s;
  static_cast<void>(ioctl(fd_, WDIOC_SETTIMEOUT, &set));
  int told = 0;
  facts_.timeout_s = ioctl(fd_, WDIOC_GETTIMEOUT, &told) == 0 && told > 0 ? told : 0;
}

int WatchdogDevice::open(const char* path, int timeout_s) noexcept {
  close_clean();
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return errno;
  struct stat status;
  if (fstat(fd, &status) != 0 || S_ISREG(status.st_mode)) {
    close(fd);
    return ENOTTY;
  }
  fd_ = fd;
  facts_ = {};
  // Before its timeout is set, which some drivers forget when they stop.
  bool never_stops = false;
  if (const int error = ask_to_stop(fd, never_stops); error != 0) {
    leave();
    return error;
  }
  ask(timeout_s);
  facts_.stoppable = facts_.stoppable && !never_stops;
  return 0;
}

int WatchdogDevice::feed() noexcept {
  return write(fd_, "", 1) == 1 ? 0 : errno;
}

void WatchdogDevice::close_clean() noexcept {
  if (fd_ < 0) return;
  [[maybe_unused]] const ssize_t n = write(fd_, "V", 1);
  leave();
}

void WatchdogDevice::leave() noexcept {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

}  // namespace coir::port
