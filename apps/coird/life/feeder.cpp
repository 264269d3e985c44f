#include "feeder.h"

#if !COIR_NO_ASYNC

#include <coir/stack_size.h>
#include <coir/wait.h>
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "../complaint.h"
#include "notify.h"

using namespace std::chrono_literals;
using coir::operator""_KiB;

namespace {

// Timeouts beyond these are taken for them: what the environment says must neither spin nor overflow.
constexpr std::chrono::milliseconds kShortest{40};
constexpr std::chrono::seconds kLongest = 24h;
constexpr std::chrono::nanoseconds kNoPeriod = 24h * 365;
// A device that is not there is looked for this often at least, however long its timeout is to be.
constexpr std::chrono::nanoseconds kLookForDevice = 5s;

// cure_of says what helps against an error of opening the device.
const char* cure_of(int error) noexcept {
  switch (error) {
    case ENOENT:
    case ENODEV:
    case ENXIO:
      return "load the driver's module, or drop --watchdog";
    case EBUSY:
      return "another program feeds it: leave it to procd or systemd and drop --watchdog, or stop that program";
    case EACCES:
    case EPERM:
      return "give --user the right to write to it, or load its module before coird starts";
    default:
      return "name a watchdog device";
  }
}

std::uint64_t seconds_of(std::chrono::nanoseconds time) noexcept {
  return static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::seconds>(time).count());
}

}  // namespace

void Feeder::take(const Options& options) noexcept {
  path_ = options.watchdog;
  asked_ = std::min(std::chrono::ceil<std::chrono::seconds>(options.watchdog_timeout), kLongest);
  if (notify_watchdog().count() != 0)
    notify_ = std::clamp<std::chrono::nanoseconds>(notify_watchdog(), kShortest, kLongest);
}

void Feeder::open() noexcept {
  if (path_ != nullptr) open_device();
}

coir::Heartbeat* Feeder::server_heartbeat() noexcept {
  if (!feeds()) return nullptr;
  return server_ ? &*server_ : &server_.emplace("http server", server_promise());
}

// open_device says in one line how that went, and of an error once.
void Feeder::open_device() noexcept {
  const int error = device_.open(path_, static_cast<int>(asked_.count()));
  if (error == 0) {
    say_opened();
  } else if (error != told_error_) {
    complain(cure_of(error), {"--watchdog ", path_, ": ", coir::Error::from_errno(error), "; tried again"});
  }
  told_error_ = error;
}

void Feeder::say_opened() const noexcept {
  const coir::port::WatchdogDevice::Facts& facts = device_.facts();
  const std::uint64_t takes = seconds_of(device_timeout()), asked = seconds_of(asked_);
  const char* const name = facts.identity[0] != '\0' ? facts.identity : "unnamed";
  if (facts.timeout_s == 0) {
    say({"--watchdog ", path_, " (", name, "): fed; it does not tell its timeout, which is taken for ", asked, " s"});
  } else if (takes != asked) {
    say({"--watchdog ", path_, " (", name, "): fed; its timeout is ", takes, " s, not the ", asked, " s asked for"});
  } else {
    say({"--watchdog ", path_, " (", name, "): fed; its timeout is ", takes, " s"});
  }
  if (facts.bit) say({"--watchdog ", path_, ": the machine's last restart was the watchdog's"});
  if (!facts.stoppable)
    say({"--watchdog ", path_, ": it cannot be stopped (nowayout): within ", takes,
         " s after coird ends, the machine restarts unless coird runs again"});
}

std::chrono::nanoseconds Feeder::device_timeout() const noexcept {
  const int told = device_.facts().timeout_s;
  return told != 0 ? std::chrono::seconds(told) : asked_;
}

std::chrono::nanoseconds Feeder::shortest() const noexcept {
  if (path_ == nullptr) return notify_;
  const std::chrono::nanoseconds device = device_.is_open() ? device_timeout() : asked_;
  return notify_.count() == 0 ? device : std::min(device, notify_);
}

void Feeder::start() noexcept {
  if (!feeds()) return;
  poke_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (poke_ >= 0) pulse_ = coir::spawn({.name = "pulse", .stack = 8_KiB}, [this] { pulse(); });
  // Without a pulse the workers and the server are watched all the same.
  if (pulse_.started()) reactor_.emplace("reactor", promise());
  const auto started = coir::LifeWatch::start(
      patience(), [this](bool alive) { return look(alive); }, [this](std::string_view text) { hear(text); });
  if (!started) {
    warn({"no watchdog is fed: ", started.error()});
    device_.close_clean();
  }
}

// pulse reports whenever the reactor has brought news of what the thread writes.
void Feeder::pulse() noexcept {
  for (;;) {
    std::uint64_t poked;
    if (read(poke_, &poked, sizeof poked) == sizeof poked) {
      reactor_->report();
    } else if (!coir::wait(poke_, coir::Direction::readable)) {
      return;
    }
  }
}

// hear has the log, and the record of a hang, name a fiber or a group before coird is no longer alive.
void Feeder::hear(std::string_view text) noexcept {
  warn({text});
  if (hung_text_.empty()) hung_text_ = coir::format(hung_, "the watchdog was not fed: ", text);
}

Feeder::Turn Feeder::look(bool alive) noexcept {
  // A feed that is due waits for nothing else, such as a disk.
  if (alive) feed_due();
  if (path_ != nullptr && !device_.is_open()) open_device();
  if (alive != alive_) {
    alive_ = alive;
    if (alive) {
      say({"alive again: the watchdog is fed"});
      record_.note(coir::End::none);
      hung_text_ = {};
    } else {
      warn({"the watchdog is not fed until that is over; it waits for at most ", seconds_of(shortest()), " s"});
      // The end, unless another one takes its place.
      record_.note(coir::End::hang, hung_text_);
    }
  }
  keep_promises();
  if (poke_ >= 0) {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = write(poke_, &one, sizeof one);
  }
  const bool absent = path_ != nullptr && !device_.is_open();
  return {.pause = std::min(shortest() / 4, absent ? kLookForDevice : kNoPeriod), .patience = patience()};
}

// feed_due feeds what has not been fed for half of its timeout.
void Feeder::feed_due() noexcept {
  const std::int64_t now = coir::monotonic_ns();
  if (notify_.count() != 0 && now >= notify_due_ns_) {
    notify_alive();
    notify_due_ns_ = now + notify_.count() / 2;
  }
  if (!device_.is_open() || now < device_due_ns_) return;
  device_due_ns_ = now + device_timeout().count() / 2;
  if (const int error = device_.feed(); error != 0) {
    warn({"--watchdog ", path_, ": ", coir::Error::from_errno(error), "; opened again"});
    device_.leave();
  }
}

// keep_promises has the groups' periods follow the timeout: a device may come late, and take another time than asked.
void Feeder::keep_promises() noexcept {
  const bool end = groups_end_.load(std::memory_order_relaxed);
  if (reactor_) reactor_->promise(end ? kNoPeriod : promise());
  if (server_) server_->promise(end ? kNoPeriod : server_promise());
}

void Feeder::end_groups() noexcept {
  groups_end_.store(true, std::memory_order_relaxed);
  if (!pulse_.started()) return;
  static_cast<void>(pulse_.cancel("coird stops"));
  static_cast<void>(pulse_.join());
}

void Feeder::stop() noexcept {
  coir::LifeWatch::stop();
  device_.close_clean();
  record_.finish();
  if (poke_ >= 0) coir::close_fd(poke_);
  poke_ = -1;
}

#else

void Feeder::take(const Options&) noexcept {}
void Feeder::open() noexcept {}
coir::Heartbeat* Feeder::server_heartbeat() noexcept {
  return nullptr;
}
void Feeder::start() noexcept {}
void Feeder::end_groups() noexcept {}
void Feeder::stop() noexcept {}

#endif
