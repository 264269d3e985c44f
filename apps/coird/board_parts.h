#pragma once

#include <coir/config.h>
#include <coir/http/metrics.h>
#include <coir/port/hardware.h>

#include <cstdint>
#include <expected>
#include <span>
#include <string_view>

#include "options/options.h"

#if !COIR_NO_ASYNC
#include <coir/atomic.h>
#include <coir/mutex.h>
#include <coir/port/pins.h>
#endif

// take_pin takes a name of --pin, for coirctl.
[[nodiscard]] bool take_pin(const Setting& setting, Options& options) noexcept;

// BoardParts is the hardware of the machine as agents, coirctl and /metrics see it: sensors, lights and converters below the
// folder of --sysfs, and pins, there and by /dev/gpiochip*. With a --sysfs other than /sys its files alone count.
//
// Pins are a build's with fibers. An output stays taken, under the name "coird", until coird ends: otherwise its level could
// change. A pin that is read is given back. Calls are made on a fiber, and run on the blocking pool.
class BoardParts {
 public:
  static constexpr std::size_t kMostThermometers = 8;

  BoardParts() noexcept = default;
  BoardParts(const BoardParts&) = delete;
  BoardParts& operator=(const BoardParts&) = delete;

  // open looks for the folder, and for the pins of --pin among the board's names. False: one line has said what is wrong.
  [[nodiscard]] bool open(const Options& options) noexcept;

  const coir::port::Hardware& hardware() const noexcept { return hardware_; }

  // temperatures copies what the thermometers have shown within the last ten seconds, and returns how many there are. It may wait
  // for the blocking pool.
  std::size_t temperatures(std::span<coir::port::Thermometer> into) noexcept;

  // write_metrics adds the temperatures, and how many outputs are high.
  void write_metrics(coir::http::MetricsText& text) noexcept;

#if !COIR_NO_ASYNC
  static constexpr std::size_t kMostHeld = 16;

  struct Level {
    bool high = false;
    bool output = false;
  };
  // Fault says why a pin cannot be used, as a text for people with the cure.
  struct Fault {
    explicit Fault(std::string_view name, const coir::port::PinFault& why) noexcept;
    std::string_view text() const noexcept { return {room, size}; }

    char room[256];
    std::size_t size = 0;
  };

  [[nodiscard]] std::expected<Level, Fault> read_pin(std::string_view name) noexcept;
  // write_pin makes it an output of that level.
  [[nodiscard]] std::expected<void, Fault> write_pin(std::string_view name, bool high) noexcept;

  // Seen is a pin as a list shows it.
  struct Seen {
    coir::port::PinPlace place;
    coir::port::PinStatus status;
    int error = 0;
  };
  // list looks at the board's pins and then at those of --pin, as many as fit, takes none, and returns how many.
  std::size_t list(std::span<Seen> into) noexcept;

  // is_named tells whether --pin names it.
  bool is_named(std::string_view name) const noexcept;

 private:
  struct Held {
    char name[32] = {};
    coir::port::Pin pin;
    bool high = false;
  };
  Held* held(const coir::port::PinPlace& place) noexcept;
  std::expected<Level, coir::port::PinFault> read_now(std::string_view name) noexcept;
  std::expected<void, coir::port::PinFault> write_now(std::string_view name, bool high) noexcept;
  void give_back(Held& one) noexcept;

  const Options* options_ = nullptr;
  coir::port::Pins pins_;
  coir::Mutex turn_;  // of those that take pins
  Held held_[kMostHeld];
  coir::SharedAtomic<std::uint32_t> on_{0};  // threads of the pool count
  coir::Mutex look_;                         // of the temperatures
#endif

 private:
  coir::port::Hardware hardware_;
  coir::port::Thermometer thermometers_[kMostThermometers] = {};
  std::size_t thermometer_count_ = 0;
  std::int64_t thermometers_read_ns_ = 0;  // 0: never
};
