#pragma once

#include <coir/program.h>

#include <chrono>

#include "../options/options.h"

// The watchdogs are fed by a thread, in a build with fibers; one without refuses --watchdog.
#if !COIR_NO_ASYNC
#include <coir/atomic.h>
#include <coir/fiber.h>
#include <coir/heartbeat.h>
#include <coir/life_watch.h>
#include <coir/port/watchdog_device.h>

#include <optional>
#include <string_view>

#include "hang_note.h"
#endif

// Feeder feeds the device of --watchdog and the watchdog of the supervisor (life/notify.h), from a thread of its own,
// only while coird is alive: each worker switches, the reactor wakes a fiber, and the server looks after its
// connections. Half of the shortest timeout without one of them stops the feeding; then lines say which, and the timeout
// passes.
//
// Without --watchdog and such a supervisor nothing happens and no thread is started.
class Feeder {
 public:
  Feeder() noexcept = default;
  Feeder(const Feeder&) = delete;
  Feeder& operator=(const Feeder&) = delete;

  // take reads the options and what the supervisor wants.
  void take(const Options& options) noexcept;

  // open opens the device, as the last thing for which coird may need the right: a start that fails before leaves a device
  // that runs since a crash as it is. A failure is a line of the log: devices come late, and it is tried again.
  void open() noexcept;

  // server_heartbeat is what the server reports to; null: nothing is fed.
  coir::Heartbeat* server_heartbeat() noexcept;

  // start begins to feed, once coird serves. From a fiber, as end_groups: from there on only the workers are looked at,
  // for the server ends.
  void start() noexcept;
  void end_groups() noexcept;

  // stop ends the feeding and stops the device: coird ends well. After the run, or without one.
  void stop() noexcept;

#if !COIR_NO_ASYNC
  ~Feeder() { stop(); }

 private:
  using Turn = coir::LifeWatch::Turn;

  Turn look(bool alive) noexcept;
  void hear(std::string_view text) noexcept;
  bool feeds() const noexcept { return path_ != nullptr || notify_.count() != 0; }
  void open_device() noexcept;
  void say_opened() const noexcept;
  void feed_due() noexcept;
  void keep_promises() noexcept;
  void pulse() noexcept;
  std::chrono::nanoseconds device_timeout() const noexcept;
  std::chrono::nanoseconds shortest() const noexcept;
  std::chrono::nanoseconds patience() const noexcept { return shortest() / 2; }
  // Groups are late after fibers that keep a worker are, so that the fibers are named first.
  std::chrono::nanoseconds promise() const noexcept { return shortest() * 3 / 4; }
  // The server looks after its connections once a second.
  std::chrono::nanoseconds server_promise() const noexcept {
    return std::max<std::chrono::nanoseconds>(promise(), std::chrono::milliseconds(1500));
  }

  const char* path_ = nullptr;
  std::chrono::seconds asked_{0};
  std::chrono::nanoseconds notify_{0};
  coir::port::WatchdogDevice device_;
  int told_error_ = 0;  // of opening it
  bool alive_ = true;
  HangNote record_;
  char hung_[200];
  std::string_view hung_text_;  // what was named first since coird was alive
  std::int64_t device_due_ns_ = 0, notify_due_ns_ = 0;
  int poke_ = -1;  // an eventfd: the thread writes to it, and the reactor wakes the pulse
  coir::SharedAtomic<bool> groups_end_{false};
  std::optional<coir::Heartbeat> reactor_, server_;
  coir::Fiber pulse_;
#endif
};
