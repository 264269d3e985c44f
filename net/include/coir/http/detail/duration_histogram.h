#pragma once

#include <coir/atomic.h>

#include <cstddef>
#include <cstdint>

namespace coir::http {

// DurationHistogram counts durations in buckets. Any thread at any time; two additions for each.
class DurationHistogram {
 public:
  // A bucket counts durations up to its bound, in microseconds, and above the bound before; a last one counts the rest.
  static constexpr std::uint32_t kBoundsMicros[] = {500,       1'000,     2'500,     5'000,     10'000,
                                                    25'000,    50'000,    100'000,   250'000,   500'000,
                                                    1'000'000, 2'500'000, 5'000'000, 10'000'000};
  static constexpr std::size_t kBuckets = sizeof kBoundsMicros / sizeof kBoundsMicros[0] + 1;

  void record(std::int64_t ns) noexcept {
    std::size_t bucket = 0;
    while (bucket + 1 < kBuckets && ns > kBoundsMicros[bucket] * std::int64_t{1'000}) ++bucket;
    counts_[bucket].fetch_add(1, std::memory_order_relaxed);
    sum_ns_.fetch_add(ns > 0 ? static_cast<std::uint64_t>(ns) : 0, std::memory_order_relaxed);
  }

  std::uint64_t count(std::size_t bucket) const noexcept { return counts_[bucket].load(std::memory_order_relaxed); }
  std::uint64_t sum_ns() const noexcept { return sum_ns_.load(std::memory_order_relaxed); }

 private:
  Atomic<std::uint64_t> counts_[kBuckets] = {};
  Atomic<std::uint64_t> sum_ns_ = 0;
};

}  // namespace coir::http
