#pragma once

#include <source_location>

namespace coir::detail {

// fatal ends the process, after one line on standard error that tells what a program has done wrong, which fiber did
// it and where that was spawned:
//
//   coir: more than 15 shields are nested (fiber 7 "fetch", spawned at main.cpp:12; at main.cpp:31)
//
// `where`, the place of the call, is for callers that have it at hand. From a fiber, a thread or a worker's own stack;
// it needs 1 KB of stack and no stdio. In a build without fibers serial_fatal.cpp has it.
[[noreturn]] void fatal(const char* what) noexcept;
[[noreturn]] void fatal(const char* what, const std::source_location& where) noexcept;

}  // namespace coir::detail
