#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

// Millidegrees is Linux' unit of temperatures.
using Millidegrees = std::int32_t;

// parse_reading reads the text of a sensor's file: a whole number from -273,150 to 1,000,000, and a line end. Null: the
// text is none.
std::optional<Millidegrees> parse_reading(std::string_view text) noexcept;

// Sensor is a file that holds the newest reading, such as /sys/class/thermal/thermal_zone0/temp. Without a file it makes
// readings up: a curve from 20 to 25 degrees.
class Sensor {
 public:
  // `path` must outlive the sensor; null: made up.
  explicit constexpr Sensor(const char* path) noexcept : path_(path) {}

  // read takes a reading. It opens the file each time, so that it finds a driver that is loaded late or again. Null: there
  // is no file now, or it has no reading. From a fiber; the read itself runs on a thread for blocking calls.
  std::optional<Millidegrees> read() noexcept;

 private:
  const char* path_;
  std::uint32_t made_up_ = 0;
};
