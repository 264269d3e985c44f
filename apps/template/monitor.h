#pragma once

#include <coir/atomic.h>
#include <coir/channel.h>
#include <coir/events.h>
#include <coir/spinlock.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "sensor.h"

// Reading is a value of the sensor, with its number since the start.
struct Reading {
  std::uint64_t number;
  Millidegrees value;
};

// write_json writes {"number":7,"celsius":21.500} into `room`, of which 64 bytes are enough.
std::string_view write_json(const Reading& reading, std::span<char> room) noexcept;

// Monitor takes readings and publishes them: two fibers with a bounded queue between them.
//
//   sensor --measure--> queue of kQueue --publish--> newest reading, hub of all followers
//
// Measuring never waits for publishing: a reading that finds the queue full is dropped, and counted.
class Monitor {
 public:
  static constexpr std::size_t kQueue = 16;

  // `sensor` names the sensor's file, or is null.
  explicit Monitor(const char* sensor) noexcept : sensor_(sensor) {}

  // measure takes a reading each `interval`, publish publishes them; each runs in a fiber of its own until that is
  // cancelled. Errors: cancelled.
  std::expected<void, coir::Error> measure(std::chrono::milliseconds interval) noexcept;
  std::expected<void, coir::Error> publish() noexcept;

  // newest returns the latest reading; null before the first. Any fiber or thread.
  std::optional<Reading> newest() const noexcept;
  coir::http::EventHub& followers() noexcept { return followers_; }

  // Counters of all readings: taken, failed, dropped at the full queue. Any fiber or thread.
  struct Counts {
    coir::Atomic<std::uint64_t> taken = 0, failed = 0, dropped = 0;
  };
  const Counts& counts() const noexcept { return counts_; }

 private:
  void take() noexcept;

  Sensor sensor_;
  coir::Channel<Reading> queue_{{.capacity = kQueue}};
  coir::http::EventHub followers_;
  Counts counts_;
  mutable coir::Spinlock lock_;              // of newest_
  Reading newest_{.number = 0, .value = 0};  // number 0: none yet
};
