#pragma once

#if defined(COIR_NO_ASYNC) && COIR_NO_ASYNC
#error "coir/port/futex.h: this build has no fibers (COIR_NO_ASYNC); call nothing of it, or build without --no-async"
#endif

#include <cstdint>

#include <coir/port/atomic.h>

namespace coir::port {

// futex_wait blocks the thread while `word` holds `expected`, for at most `timeout_ns` (negative: no limit). May return
// early.
void futex_wait(SharedAtomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t timeout_ns) noexcept;

// futex_wake wakes one thread that waits on `word`.
void futex_wake(SharedAtomic<std::uint32_t>& word) noexcept;

}  // namespace coir::port
