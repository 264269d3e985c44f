#pragma once

#include <cstddef>
#include <string_view>

// The bytes that assets.S puts into the program, and where each of the two ends.
extern "C" {
extern const char coird_style[], coird_style_end[], coird_script[], coird_script_end[];
}

inline std::string_view style_gz() noexcept {
  return {coird_style, static_cast<std::size_t>(coird_style_end - coird_style)};
}
inline std::string_view script_gz() noexcept {
  return {coird_script, static_cast<std::size_t>(coird_script_end - coird_script)};
}
