#pragma once

#include <coir/config.h>
#include <stdlib.h>
#include <string.h>

namespace coir::test {

// How much slower a build is. Numbers that a promise names hold in plain x86_64 builds; the others scale them down.
inline constexpr bool kAddressSanitized = COIR_ASAN;
inline constexpr bool kThreadSanitized = COIR_TSAN;

// The other CPUs' programs run in an emulator, or on a small board.
#if defined(__x86_64__)
inline constexpr bool kEmulated = false;
#else
inline constexpr bool kEmulated = true;
#endif

// Scale is one number for each kind of build.
struct Scale {
  int plain, address_sanitized, thread_sanitized, emulated;
};
consteval int scaled(Scale scale) {
  return kThreadSanitized    ? scale.thread_sanitized
         : kAddressSanitized ? scale.address_sanitized
         : kEmulated         ? scale.emulated
                             : scale.plain;
}

// full tells whether a test does all of its rounds: COIR_TEST_TIER is everything. Else it does as many as the gate has time
// for.
inline bool full() noexcept {
  const char* const tier = getenv("COIR_TEST_TIER");
  return tier != nullptr && strcmp(tier, "everything") == 0;
}

}  // namespace coir::test
