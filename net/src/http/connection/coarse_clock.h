#pragma once

#include <cstdint>

namespace coir::http {

// coarse_ns is the monotonic clock as of the kernel's last tick, 1 to 10 ms ago: it does not read the hardware.
std::int64_t coarse_ns() noexcept;

// kCoarseTickNs is a tick on the slowest of kernels: so far behind the precise clock it may be.
inline constexpr std::int64_t kCoarseTickNs = 10'000'000;

}  // namespace coir::http
