#pragma once

#include <coir/ledger.h>

namespace coir {

// The heap is what operator new hands out in a program that links coir::cxx: the memory of std::string, std::vector and
// their like. Each block is charged to account::heap before it is taken, with 16 bytes for the C library's own words,
// and refunded by operator delete. Any fiber or thread may free the block of another.
//
// A refused charge, once no relief makes room, ends the process with a line that names the size and the fiber: without
// exceptions operator new cannot fail. new (std::nothrow) returns null instead. A ceiling limits the heap:
//
//   coir::account::heap.set_ceiling(512 * 1024);
//
// Each thread charges a few kilobytes ahead, so that most calls touch no atomic: the account shows up to 8 KB too much
// for each living thread, workers included, even after the fiber that allocated has moved to another. A thread gives
// back what is left when it ends, and where a run, an isolate or a call of `blocking` ends on it. In single-worker
// builds other threads may not touch the ledger. Their charges are entered, and meet the ceiling, when the worker's
// thread charges again or takes the result of such a call or isolate.
namespace account {
extern Account heap;
}  // namespace account

// enter_heap_charges gives back what the calling thread has charged ahead. In single-worker builds it also enters the
// charges of other threads. Call it before an exact look at account::heap. Any fiber or thread; never waits.
void enter_heap_charges() noexcept;

}  // namespace coir
