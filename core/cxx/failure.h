#pragma once

// core/cxx holds the compiled part of libc++ that containers need, on the ledger: new.cpp has operator new and delete,
// hash_table.cpp, shared_ptr.cpp, sort.cpp, string.cpp and to_string.cpp instantiate what libc++'s headers only
// declare.

#include <cstddef>

namespace coir {

// fail_allocation ends the process, for without exceptions an allocation cannot fail. Its line names the fiber:
//
//   coir: no memory: 1048576 bytes for operator new; heap 4096 of 65536; fiber 12 "parser", spawned at main.cpp:7
[[noreturn]] void fail_allocation(const char* what, std::size_t bytes) noexcept;

}  // namespace coir
