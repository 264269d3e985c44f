#pragma once

#include <atomic>
#include <cstdint>
#include <source_location>

#include "steps.h"

namespace coir::explore {

// Report keeps the steps of the current run, so that an interleaving that fails can be shown.
class Report {
 public:
  void begin() noexcept { count_ = 0; }
  void step(int thread, Step kind, const void* at, std::memory_order order, const std::source_location& where) noexcept;
  // value notes what the latest step of the thread found or left; late, that its store is not to be seen yet.
  void value(int thread, std::uint64_t bits) noexcept;
  void late(int thread) noexcept;
  // became_visible notes that a store of the thread's has left its buffer.
  void became_visible(int thread, const void* at, std::uint64_t bits) noexcept;

  // print writes the last steps to standard output, a line for each.
  void print() const noexcept;

 private:
  struct Line {
    const void* at;
    std::uint64_t bits;
    std::source_location where;
    std::uint8_t thread;
    Step kind;
    std::uint8_t order;
    bool has_value, late, visible;
  };
  static constexpr std::uint32_t kLines = 1 << 13, kShown = 400;

  Line& line() noexcept { return lines_[count_++ % kLines]; }
  Line* latest(int thread) noexcept;

  std::uint32_t count_ = 0;
  Line lines_[kLines];
};

}  // namespace coir::explore
