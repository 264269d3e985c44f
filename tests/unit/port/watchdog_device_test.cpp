// WatchdogDevice says what the kernel's device really does. Its ioctls are answered here; what it writes arrives in a FIFO.

#include <CppUTest/TestHarness.h>
#include <coir/port/watchdog_device.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/watchdog.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

namespace watchdog_device_test {

using coir::port::WatchdogDevice;

namespace {

// Driver is the one that the ioctls reach. Like the board's it knows only some times.
struct Driver {
  bool answers = true;
  unsigned options = WDIOF_MAGICCLOSE | WDIOF_SETTIMEOUT;
  int boot_status = 0;
  int timeout = 60;
  bool nowayout = false;
  bool runs = true;

  int take(unsigned long request, void* argument) {
    if (!answers) return errno = ENOTTY, -1;
    switch (static_cast<unsigned>(request)) {
      case WDIOC_GETSUPPORT: {
        auto& info = *static_cast<watchdog_info*>(argument);
        info.options = options;
        memset(info.identity, 'x', sizeof info.identity);  // no NUL: a driver may fill it
        return 0;
      }
      case WDIOC_GETBOOTSTATUS:
        *static_cast<int*>(argument) = boot_status;
        return 0;
      case WDIOC_SETTIMEOUT: {
        if ((options & WDIOF_SETTIMEOUT) == 0) return errno = EOPNOTSUPP, -1;
        for (const int known : {2, 6, 11, 22, 43, 86}) {
          if (known >= *static_cast<int*>(argument)) return timeout = known, 0;
        }
        return errno = EINVAL, -1;
      }
      case WDIOC_GETTIMEOUT:
        *static_cast<int*>(argument) = timeout;
        return 0;
      case WDIOC_SETOPTIONS: {
        const bool stops = *static_cast<int*>(argument) == WDIOS_DISABLECARD;
        if (stops && nowayout) return errno = EBUSY, -1;
        return runs = !stops, 0;
      }
      default:
        return errno = ENOTTY, -1;
    }
  }
};
Driver* g_driver = nullptr;

}  // namespace

TEST_GROUP(WatchdogDevice) {
  Driver driver;
  WatchdogDevice device;
  char folder[32] = "/tmp/coir-watchdog.XXXXXX";
  char names[4][64];
  int reader = -1;

  // in_folder is the path of a file of this test's own.
  const char* in_folder(int which, const char* name) {
    snprintf(names[which], sizeof names[which], "%s%s", folder, name);
    return names[which];
  }
  void setup() override {
    g_driver = &driver;
    CHECK_TRUE(mkdtemp(folder) != nullptr);
    LONGS_EQUAL(0, mkfifo(in_folder(0, "/watchdog"), 0600));
    reader = ::open(names[0], O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  }
  void teardown() override {
    device.leave();
    close(reader);
    g_driver = nullptr;
    unlink(in_folder(1, "/regular"));
    unlink(names[0]);
    LONGS_EQUAL(0, rmdir(folder));
  }
  int open(int timeout_s) { return device.open(names[0], timeout_s); }
  // wrote tells whether the device has got these bytes since it was last asked.
  bool wrote(std::string_view wanted) const {
    char bytes[64];
    const ssize_t n = read(reader, bytes, sizeof bytes);
    return std::string_view(bytes, n > 0 ? static_cast<std::size_t>(n) : 0) == wanted;
  }
};

TEST(WatchdogDevice, the_true_timeout_is_read_back) {
  LONGS_EQUAL(0, open(30));
  LONGS_EQUAL(43, device.facts().timeout_s);
  LONGS_EQUAL(32, strlen(device.facts().identity));
}

TEST(WatchdogDevice, a_time_that_the_driver_refuses_leaves_its_own) {
  LONGS_EQUAL(0, open(90));
  LONGS_EQUAL(60, device.facts().timeout_s);
  driver.options &= ~static_cast<unsigned>(WDIOF_SETTIMEOUT);
  LONGS_EQUAL(0, open(10));
  LONGS_EQUAL(60, device.facts().timeout_s);
}

TEST(WatchdogDevice, a_driver_that_tells_nothing_is_fed_all_the_same) {
  driver.answers = false;
  LONGS_EQUAL(0, open(30));
  LONGS_EQUAL(0, device.facts().timeout_s);
  CHECK_TRUE(device.facts().stoppable);
  LONGS_EQUAL(0, device.feed());
}

TEST(WatchdogDevice, feeding_never_writes_the_magic_byte_and_a_clean_end_does) {
  LONGS_EQUAL(0, open(30));
  LONGS_EQUAL(0, device.feed());
  LONGS_EQUAL(0, device.feed());
  CHECK_TRUE(wrote({"\0\0", 2}));
  device.close_clean();
  CHECK_TRUE(wrote("V"));
  CHECK_FALSE(device.is_open());
  device.close_clean();
}

TEST(WatchdogDevice, one_that_is_left_runs_on) {
  LONGS_EQUAL(0, open(30));
  device.leave();
  CHECK_TRUE(wrote(""));
}

TEST(WatchdogDevice, nowayout_and_a_driver_without_magic_close_are_told) {
  LONGS_EQUAL(0, open(30));
  CHECK_TRUE(device.facts().stoppable);
  CHECK_TRUE(driver.runs);
  driver.nowayout = true;
  LONGS_EQUAL(0, open(30));
  CHECK_FALSE(device.facts().stoppable);
  CHECK_TRUE(driver.runs);
  driver.nowayout = false;
  driver.options &= ~static_cast<unsigned>(WDIOF_MAGICCLOSE);
  LONGS_EQUAL(0, open(30));
  CHECK_FALSE(device.facts().stoppable);
}

TEST(WatchdogDevice, a_restart_that_was_the_watchdogs_is_told) {
  LONGS_EQUAL(0, open(30));
  CHECK_FALSE(device.facts().bit);
  driver.boot_status = WDIOF_CARDRESET;
  LONGS_EQUAL(0, open(30));
  CHECK_TRUE(device.facts().bit);
}

TEST(WatchdogDevice, absence_a_regular_file_and_a_device_that_goes_are_errors) {
  LONGS_EQUAL(ENOENT, device.open(in_folder(1, "/absent"), 30));
  fclose(fopen(in_folder(1, "/regular"), "w"));
  LONGS_EQUAL(ENOTTY, device.open(names[1], 30));
  CHECK_FALSE(device.is_open());
  LONGS_EQUAL(0, open(30));
  // Its reader stays in place of a driver: a device that is full answers like one that fails.
  while (device.feed() == 0) {
  }
  LONGS_EQUAL(EAGAIN, device.feed());
}

}  // namespace watchdog_device_test

extern "C" int __real_ioctl(int fd, unsigned long request, void* argument);
extern "C" int __wrap_ioctl(int fd, unsigned long request, ...);
extern "C" int __wrap_ioctl(int fd, unsigned long request, ...) {
  va_list list;
  va_start(list, request);
  void* const argument = va_arg(list, void*);
  va_end(list);
  using watchdog_device_test::g_driver;
  return g_driver != nullptr ? g_driver->take(request, argument) : __real_ioctl(fd, request, argument);
}
