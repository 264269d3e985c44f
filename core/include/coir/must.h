#pragma once

// Ends the process if a call fails that cannot fail in a correct program.
//
//   auto log = must(File::open("/var/log/coird"));        // ends the process with a line that names error and place

#include <expected>
#include <source_location>
#include <type_traits>
#include <utility>

#include <coir/error.h>

namespace coir {

namespace detail {

// end_by ends the process by fatal's line with the error in it; must.cpp has it.
[[noreturn]] void end_by(const Error& error, const std::source_location& where) noexcept;

}  // namespace detail

// must returns the value of `outcome`. If that holds an error, must ends the process with one line that tells the error,
// the place of the call and the fiber.
//
// For main functions, tests and code that cannot continue. value() of a std::expected ends the process likewise, but knows
// only the address of the call. From a fiber, a thread or a worker's own stack. Costs 1 KB of stack if it ends the process.
template <class T>
T must(std::expected<T, Error> outcome, const std::source_location& where = std::source_location::current()) {
  if (!outcome) [[unlikely]]
    detail::end_by(outcome.error(), where);
  if constexpr (!std::is_void_v<T>) return *std::move(outcome);
}

}  // namespace coir
