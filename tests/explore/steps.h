#pragma once

#include <atomic>
#include <cstdint>
#include <source_location>

namespace coir::explore {

// The seams call these functions. None has an effect on a thread that is not explored.

enum class Step : std::uint8_t { load, store, exchange, compare, update, fence, sleep, wake, poll, start, join, time };

// before returns when it is the calling thread's turn to take this step. All that must be visible before the step is
// visible then.
void before(Step kind, const void* at, std::memory_order order, const std::source_location& where) noexcept;

// store writes, now or later: a store that is no fence may stay in the thread's buffer for a while.
void store(void* at, std::uint64_t bits, unsigned bytes, std::memory_order order) noexcept;

// see_own_buffered replaces what was read from memory by what this thread itself has stored last.
void see_own_buffered(const void* at, void* value, unsigned bytes) noexcept;

// loaded and written note what a step found or left, for the report and to know who spins in vain.
void loaded(const void* at, std::uint64_t bits) noexcept;
void written(const void* at, std::uint64_t bits) noexcept;

// barrier_everywhere makes all threads' late stores visible.
void barrier_everywhere() noexcept;

// forget_buffered empties the thread's buffer.
void forget_buffered() noexcept;

// sleep_on blocks until wake_one or the time comes; false when it was the time. No step by itself.
bool sleep_on(const void* at, std::int64_t due_ns) noexcept;
void wake_one(const void* at) noexcept;

// loses_this_wake is true of wakings that a mutant forgets.
bool loses_this_wake() noexcept;

// now_ns is a clock that stands still while anybody can run.
std::int64_t now_ns() noexcept;

}  // namespace coir::explore
