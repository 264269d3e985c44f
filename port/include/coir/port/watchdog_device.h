#pragma once

// The device that restarts the machine unless it is fed.
//
//   WatchdogDevice watchdog;
//   if (const int error = watchdog.open("/dev/watchdog", 30); error != 0) return complain(error);
//   show(watchdog.facts().timeout_s);                                       // feed it at half of this time
//   if (const int error = watchdog.feed(); error != 0) return complain(error);

namespace coir::port {

// WatchdogDevice is the kernel's interface to a watchdog timer: opening it starts the timer. Any thread, one at a time.
// Each call is a system call or a few; none waits.
class WatchdogDevice {
 public:
  // Facts is what the device tells once it is open.
  struct Facts {
    int timeout_s = 0;  // what it really takes; 0: the driver does not tell
    bool stoppable =
        false;         // it stops by `close_clean`: no for a kernel with nowayout, and drivers without magic close
    bool bit = false;  // the machine's last restart was the watchdog's
    char identity[33] = {};  // what the driver calls itself
  };

  WatchdogDevice() noexcept = default;
  ~WatchdogDevice() { close_clean(); }
  WatchdogDevice(const WatchdogDevice&) = delete;
  WatchdogDevice& operator=(const WatchdogDevice&) = delete;

  // open opens the device, asks for a timeout and reads the true one back. Returns 0, or an errno: ENOENT and ENODEV (no
  // driver is loaded), EBUSY (another program holds it), EACCES, ENOTTY (a regular file).
  int open(const char* path, int timeout_s) noexcept;

  // feed restarts the time. Returns 0, or an errno: the device has gone.
  int feed() noexcept;

  // close_clean stops the timer, where it can be stopped, and closes the device; leave closes it with the timer running.
  // Nothing happens if it is closed already.
  void close_clean() noexcept;
  void leave() noexcept;

  bool is_open() const noexcept { return fd_ >= 0; }
  const Facts& facts() const noexcept { return facts_; }

 private:
  void ask(int timeout_s) noexcept;

  int fd_ = -1;
  Facts facts_;
};

}  // namespace coir::port
