#pragma once

// Sizes of stacks.
//
//   Fiber fiber = spawn({.name = "deep", .stack = 32_KiB}, [] { show("it runs"); });
//   fiber.detach();

#include <cstddef>

#include <coir/config.h>

namespace coir {

// _KiB and _MiB are for sizes in options: {.stack = 16_KiB}.
consteval std::size_t operator""_KiB(unsigned long long n) {
  return static_cast<std::size_t>(n) * 1024;
}
consteval std::size_t operator""_MiB(unsigned long long n) {
  return static_cast<std::size_t>(n) * 1024 * 1024;
}

// Stacks come in four sizes; a request is rounded up to the next. Address and thread sanitizers inflate frames: their
// builds give four times as much under the same names.
inline constexpr std::size_t kStackClassCount = 4;
inline constexpr std::size_t kStackInflation = COIR_ASAN || COIR_TSAN ? 4 : 1;

// nominal_stack_bytes is the size of class 0..3 as its users name it: 8, 16, 32, 64 KiB.
constexpr std::size_t nominal_stack_bytes(std::size_t stack_class) {
  return (std::size_t{8} * 1024) << stack_class;
}

}  // namespace coir
