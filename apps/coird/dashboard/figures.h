#pragma once

#include <coir/config.h>
#include <coir/format.h>
#include <coir/http/detail/duration_histogram.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

struct Daemon;

// FigureTexts is figures as texts for people: the id by which script.js finds the place of each, its name and its value.
class FigureTexts {
 public:
  struct One {
    const char *id, *name;
    std::uint8_t size;
    char room[63];

    std::string_view text() const noexcept { return {room, size}; }
  };
  static constexpr std::size_t kMost = 9;

  // add takes one more. The id and the name are literals.
  template <class... Parts>
  void add(const char* id, const char* name, const Parts&... parts) noexcept {
    if (count_ == kMost) return;
    One& one = all_[count_++];
    one.id = id;
    one.name = name;
    one.size = static_cast<std::uint8_t>(coir::format(one.room, parts...).size());
  }
  std::span<const One> all() const noexcept { return std::span(all_).first(count_); }

 private:
  std::size_t count_ = 0;
  One all_[kMost];
};

// Figures tells the state of coird in a few texts. The ledger and the log are not among them.
class Figures {
 public:
  // It begins to count.
  explicit Figures(Daemon& daemon) noexcept;

  // step makes the figures of a window, the last ten steps, from those of this moment. Called each second.
  void step() noexcept;
  // forget ends the window: durations and rates are those since the start again.
  void forget() noexcept { steps_ = 0; }

  // tell adds all figures. One call at a time. It may wait for sensors.
  void tell(FigureTexts& texts) const noexcept;

 private:
  static constexpr std::size_t kWindow = 10;
  static constexpr std::size_t kBuckets = coir::http::DurationHistogram::kBuckets;

  struct Counts {
    std::uint64_t requests = 0;
    std::uint64_t durations[kBuckets] = {};
  };

  Counts now() const noexcept;
  void tell_requests(FigureTexts& texts) const noexcept;
  void tell_states(FigureTexts& texts) const noexcept;
  void tell_sensors(FigureTexts& texts) const noexcept;

  Daemon& daemon_;
  const std::int64_t began_ns_;
  std::size_t steps_ = 0;
  Counts window_[kWindow];
};
