#pragma once

// A main that is written once for builds with and without fibers.
//
//   int main() {
//     return coir::run_program([] { show("it runs"); });
//   }

#include <concepts>
#include <utility>

#include <coir/config.h>

#if COIR_NO_ASYNC
#include <coir/error.h>

#include <cstdint>
#include <expected>
#include <type_traits>
#else
#include <coir/inspect.h>
#include <coir/runtime.h>
#include <coir/trace.h>
#endif

namespace coir {

#if COIR_NO_ASYNC
// kFibers tells whether this build has fibers. Without them a program does one thing at a time and waits in poll(2).
inline constexpr bool kFibers = false;

// Without fibers there is nothing to trace; see coir/trace.h. Error: unsupported.
inline bool tracing() noexcept {
  return false;
}
inline std::expected<std::uint64_t, Error> write_trace(int) noexcept {
  return std::unexpected(Error{ErrorCode::unsupported});
}

namespace detail {
// environment_fits, in serial_program.cpp, complains of a variable of the environment with a bad value.
bool environment_fits() noexcept;
}  // namespace detail
#else
inline constexpr bool kFibers = true;
#endif

// run_program runs `body` as a whole program, for a main() that is written once for builds with and without fibers: as
// the first fiber of coir::run, or on the calling thread. Returns the exit status: the body's; 1 when the runtime could
// not run; 2 for an environment variable with a bad value, or one that asks for what this build lacks (COIR_WORKERS
// over 1 without fibers), which one line on standard error has named.
template <std::invocable F>
int run_program(F&& body) {
#if COIR_NO_ASYNC
  if (!detail::environment_fits()) return 2;
  if constexpr (std::is_convertible_v<std::invoke_result_t<F&>, int>) {
    return body();
  } else {
    body();
    return 0;
  }
#else
  return run(std::forward<F>(body));
#endif
}

// show_fibers_on has a signal dump all fibers to standard error; see coir/inspect.h. Without fibers the signal stays
// what it was.
inline void show_fibers_on([[maybe_unused]] int signal) noexcept {
#if !COIR_NO_ASYNC
  static_cast<void>(dump_fibers_on(signal));
#endif
}

}  // namespace coir
