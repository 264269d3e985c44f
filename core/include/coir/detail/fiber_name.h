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

// NameWhile has reports call the fiber that calls by another name while it lives: a static string. It does nothing on a
// plain thread. Two nanoseconds.
class NameWhile {
 public:
  explicit NameWhile(const char* name) noexcept;
  ~NameWhile();
  NameWhile(const NameWhile&) = delete;
  NameWhile& operator=(const NameWhile&) = delete;

 private:
  const char* before_ = nullptr;
};

}  // namespace coir::detail
