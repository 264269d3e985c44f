#pragma once

// A thread waits for a word of memory to change.
//
//   SharedAtomic<std::uint32_t> word{0};
//   while (word.load() == 0) futex_wait(word, 0, -1);      // one thread
//   word.store(1);                                         // another
//   futex_wake(word);

#include <coir/port/needs_fibers.h>

#include <cstdint>

#include <coir/port/atomic.h>

namespace coir::port {

// futex_wait blocks the thread while `word` holds `expected`, for at most `timeout_ns` (negative: no limit). May return
// early.
void futex_wait(SharedAtomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t timeout_ns) noexcept;

// futex_wake wakes one thread that waits on `word`.
void futex_wake(SharedAtomic<std::uint32_t>& word) noexcept;

}  // namespace coir::port
