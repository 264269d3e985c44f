#pragma once

// Stands in the place of port's coir/port/futex.h where interleavings are explored: sleeping and waking are steps.

#include <coir/atomic.h>

#include <cstdint>

namespace coir::port {

void futex_wait(SharedAtomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t timeout_ns,
                std::source_location where = std::source_location::current()) noexcept;
void futex_wake(SharedAtomic<std::uint32_t>& word,
                std::source_location where = std::source_location::current()) noexcept;

}  // namespace coir::port
