#pragma once

#include <coir/deadline.h>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace coir {

// ReconnectPause is how long a client that keeps a connection waits before it makes it anew. It doubles with each attempt
// that has brought nothing.
class ReconnectPause {
 public:
  // A stream may ask for any pause. This long it is at least behind an attempt that has brought nothing, unless the
  // program's own is shorter, and at most in any case.
  static constexpr std::chrono::milliseconds kLeastFruitless{500};
  static constexpr std::chrono::milliseconds kMostWanted{300'000};

  struct Rules {
    std::chrono::milliseconds pause;    // the program's own
    std::chrono::milliseconds longest;  // up to which that one doubles
  };

  // after returns the pause behind an attempt, of which `fruitful` tells whether it brought something; `wanted_ms` is
  // what the stream has asked for.
  std::chrono::milliseconds after(bool fruitful, const Rules& rules, std::optional<std::uint32_t> wanted_ms) noexcept {
    using std::chrono::milliseconds;
    milliseconds pause = rules.pause;
    if (wanted_ms) pause = std::min(milliseconds(*wanted_ms), kMostWanted);
    if (fruitful) {
      fruitless_ = 0;
      return pause;
    }
    pause = std::max(pause, std::min(kLeastFruitless, rules.pause));
    const milliseconds doubled = pause * (std::int64_t{1} << fruitless_);
    if (fruitless_ < 16) ++fruitless_;
    return std::min(doubled, std::max(rules.longest, pause));
  }

  // spread adds up to a quarter, so that not all clients of a server that has restarted come at once.
  static std::chrono::nanoseconds spread(std::chrono::nanoseconds pause) noexcept {
    return pause + pause / 1024 * (monotonic_ns() % 257);
  }

 private:
  std::uint8_t fruitless_ = 0;  // attempts since the last that brought something, as far as they count
};

}  // namespace coir
