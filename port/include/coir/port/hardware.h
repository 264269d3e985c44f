#pragma once

// The files by which the kernel offers a board's sensors, lights and converters. coir/port/pins.h has its pins.
//
//   auto board = Hardware::open("/sys");
//   if (!board) return complain(board.error());
//   if (auto set = board->set_led("status", 1); !set) return complain(set.error());

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string_view>
#include <utility>

namespace coir::port {

// Thermometer is a sensor of temperature, as it was read.
struct Thermometer {
  char name[32];  // NUL-terminated: what the kernel calls its place, such as "soc_thermal"
  std::int32_t millidegrees;
};

// Led is a light and how bright it is, from 0 to `most`.
struct Led {
  char name[48];  // NUL-terminated
  std::uint32_t brightness;
  std::uint32_t most;
};

// Voltage is what a channel of an analogue-to-digital converter reads.
struct Voltage {
  std::int32_t raw;
  std::int64_t microvolts;  // 0 where the board does not tell the scale
  bool scaled;              // it tells
};

// Hardware is what a board has beside its processor: sensors, lights, converters. This one sees them through files
// below a folder, /sys or one that looks like it:
//
//   class/thermal/thermal_zone*/{type,temp}                    temperatures
//   class/leds/NAME/{brightness,max_brightness}                lights
//   bus/iio/devices/iio:deviceD/in_voltageC_{raw,scale}        converters, or else, of CVITEK's boards,
//   class/cvi-saradc/cvi-saradcD/device/cv_saradc
//
// Nothing outside of that folder is read or written, whatever its links lead to. Each call opens what it needs, for
// modules are loaded late and unplugged devices come again. Calls block on files and take a few system calls: a fiber
// makes them on the blocking pool (coir/blocking.h). Any thread. Stack: 1 KB.
//
// Errors are an errno: ENOENT and ENODEV (the board has no such thing), EXDEV (a link leads out of the folder), EINVAL
// (what was read is no number), EACCES, EBUSY (another owner converts), and whatever the driver says.
class Hardware {
 public:
  constexpr Hardware() noexcept = default;
  Hardware(Hardware&& other) noexcept : root_(std::exchange(other.root_, -1)) {}
  Hardware& operator=(Hardware&& other) noexcept {
    std::swap(root_, other.root_);
    return *this;
  }
  ~Hardware();

  // open takes the folder that the paths above begin in.
  [[nodiscard]] static std::expected<Hardware, int> open(const char* folder) noexcept;

  // has_thermometers tells whether there may be any, at the cost of one look for a file.
  [[nodiscard]] bool has_thermometers() const noexcept;

  // thermometers and leds read all there are, as many as fit, in the order of their names, and return how many. One that
  // cannot be read is left out. None at all is no error.
  [[nodiscard]] std::expected<std::size_t, int> thermometers(std::span<Thermometer> into) const noexcept;
  [[nodiscard]] std::expected<std::size_t, int> leds(std::span<Led> into) const noexcept;

  // set_led has a light shine. Also: ERANGE (`brightness` is over its most).
  [[nodiscard]] std::expected<void, int> set_led(std::string_view name, std::uint32_t brightness) const noexcept;

  // read_adc converts once. A converter of CVITEK's, whose driver remembers the chosen channel for everybody, has one
  // owner during the call: its file is locked, and a second call at that time, of any process, fails with EBUSY.
  [[nodiscard]] std::expected<Voltage, int> read_adc(std::uint32_t device, std::uint32_t channel) const noexcept;

 private:
  explicit Hardware(int root) noexcept : root_(root) {}

  int root_ = -1;
};

}  // namespace coir::port
