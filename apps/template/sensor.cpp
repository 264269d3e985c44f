#include "sensor.h"

#include <coir/file.h>

#include <charconv>

std::optional<Millidegrees> parse_reading(std::string_view text) noexcept {
  if (text.ends_with('\n')) text.remove_suffix(1);
  Millidegrees value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (value < -273'150 || value > 1'000'000) return std::nullopt;
  return value;
}

std::optional<Millidegrees> Sensor::read() noexcept {
  if (path_ == nullptr) {
    // Up for fifty readings, and down again.
    const std::uint32_t step = made_up_++ % 100;
    return 20'000 + static_cast<Millidegrees>(step < 50 ? step : 100 - step) * 100;
  }
  char text[32];
  auto file = coir::File::open(path_);
  if (!file) return std::nullopt;
  const auto got = file->read_all(text);
  if (!got) return std::nullopt;
  return parse_reading({text, *got});
}
