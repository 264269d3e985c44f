#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

// Millidegrees are what Linux tells temperatures in.
using Millidegrees = std::int32_t;

// parse_reading reads what a sensor's file holds: a whole number and a line end, between -273,150 and 1,000,000. Null: it
// is none.
std::optional<Millidegrees> parse_reading(std::string_view text) noexcept;

// Sensor is a file that holds the newest reading, such as /sys/class/thermal/thermal_zone0/temp. Without a file it makes
// readings up: a curve between 20 and 25 degrees.
class Sensor {
 public:
  // `path` must outlive the sensor; null: made up.
  explicit constexpr Sensor(const char* path) noexcept : path_(path) {}

  // read takes a reading. The file is opened each time: a driver that is loaded late, or anew, is found. Null: there is
  // no file now, or it holds no reading. From a fiber; the read itself runs on a thread for blocking calls.
  std::optional<Millidegrees> read() noexcept;

 private:
  const char* path_;
  std::uint32_t made_up_ = 0;
};
