#include <coir/port/watchdog_device.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/watchdog.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <string_view>

#include "sysfs.h"

namespace coir::port {

namespace {

constexpr unsigned kMiscMajor = 10, kWatchdogMinor = 130;  // of /dev/watchdog, which is watchdog0 by its old name

// never_stops tells whether the kernel says that the device has nowayout. Kernels without this file do not tell.
bool never_stops(dev_t device, std::string_view folder) noexcept {
  const bool by_old_name = major(device) == kMiscMajor && minor(device) == kWatchdogMinor;
  const sysfs::Path path = by_old_name
                               ? sysfs::Path(folder, "/class/watchdog/watchdog0/nowayout")
                               : sysfs::Path(folder, "/dev/char/", major(device), ":", minor(device), "/nowayout");
  const int fd = ::open(path.text(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char value = 0;
  const bool set = read(fd, &value, 1) == 1 && value == '1';
  close(fd);
  return set;
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
  // Where a driver cannot set the time, or refuses this one, its own holds.
  int set = timeout_s;
  static_cast<void>(ioctl(fd_, WDIOC_SETTIMEOUT, &set));
  int told = 0;
  facts_.timeout_s = ioctl(fd_, WDIOC_GETTIMEOUT, &told) == 0 && told > 0 ? told : 0;
}

int WatchdogDevice::open(const char* path, int timeout_s, const char* sysfs) noexcept {
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
  ask(timeout_s);
  facts_.stoppable = facts_.stoppable && !never_stops(status.st_rdev, sysfs);
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
