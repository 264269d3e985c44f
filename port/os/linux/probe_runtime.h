#pragma once

#include <coir/port/probe.h>
#include <unistd.h>

#include <cstddef>
#include <span>

namespace coir::port {

// probe_runtime asks for what fibers and their waits are made of, and returns how many features it filled in from the
// front. A build without fibers has its own.
std::size_t probe_runtime(std::span<Feature, kFeatures> features) noexcept;

// opens closes what a system call returned and tells whether it returned anything.
inline bool opens(long fd) noexcept {
  if (fd < 0) return false;
  ::close(static_cast<int>(fd));
  return true;
}

}  // namespace coir::port
