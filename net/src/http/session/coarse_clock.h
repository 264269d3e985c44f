#pragma once

#include <cstdint>

namespace coir::http {

// coarse_ns is the monotonic clock as of the kernel's last tick, 1 to 4 ms ago: it does not read the hardware.
std::int64_t coarse_ns() noexcept;

}  // namespace coir::http
