#pragma once

// Stands in the place of port's coir/port/barrier.h where interleavings are explored: the barrier is a step that makes
// every thread's late stores visible.

#include <source_location>

namespace coir::port {

bool prepare_barrier() noexcept;
[[nodiscard]] bool barrier_everywhere(std::source_location where = std::source_location::current()) noexcept;
inline void compiler_barrier() noexcept {}

}  // namespace coir::port
