#pragma once

#include <cstdint>
#include <source_location>

namespace coir::detail {

// FiberName is what a report says of a fiber that may have ended by then. An id of 0 is no fiber: a plain thread.
struct FiberName {
  std::uint64_t id = 0;
  const char* name = nullptr;
  std::source_location where;  // of the spawn
};

// name_of_caller is the name of the fiber that calls.
FiberName name_of_caller() noexcept;

}  // namespace coir::detail
