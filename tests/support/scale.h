#pragma once

namespace coir::test {

// What a build is slowed down by. Numbers that a promise names hold in plain x86_64 builds; the others scale them down.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool kAddressSanitized = true;
#else
inline constexpr bool kAddressSanitized = false;
#endif
#if __has_feature(thread_sanitizer)
inline constexpr bool kThreadSanitized = true;
#else
inline constexpr bool kThreadSanitized = false;
#endif
#else
inline constexpr bool kAddressSanitized = false;
inline constexpr bool kThreadSanitized = false;
#endif

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

}  // namespace coir::test
