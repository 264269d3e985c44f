#pragma once

// Features of the running kernel, and the fallback for each that is missing.
//
//   Feature features[kFeatures];
//   const std::size_t count = probe(features);
//   for (const Feature& each : std::span(features, count)) show(each.name, each.used());

#include <cstddef>
#include <span>

namespace coir::port {

// Feature is something a kernel may lack, with what is used where it has it and where it has not.
struct Feature {
  const char* name;
  bool present;
  const char* with;
  const char* without;

  const char* used() const noexcept { return present ? with : without; }
};

inline constexpr std::size_t kFeatures = 14;

// probe asks the running kernel for each feature that this build could use, by using it, and leaves nothing behind.
// Returns how many it filled in. It takes some tens of system calls.
std::size_t probe(std::span<Feature, kFeatures> features) noexcept;

}  // namespace coir::port
