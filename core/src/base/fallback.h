#pragma once

#include <cstdint>

namespace coir {

// Fallback is what the runtime does where the kernel, a limit or the caller does not let it do better. Each is one line
// on standard error, once in a process, where the environment has COIR_DEBUG=1:
//
//   coir: debug: this kernel has no epoll: descriptors are polled by ppoll
//
// fallback.cpp has the lines.
enum class Fallback : std::uint8_t {
  ppoll,           // no epoll
  guards_protect,  // no MADV_GUARD_INSTALL
  guards_group,    // the map count is spent: a guard for each group of stacks, and canaries
  guards_none,     // the kernel refuses even those
  woken_slot,      // no membarrier: thieves leave the fiber just woken alone
  no_pidfd,        // the end of a child process is polled for
  blocks_thread,   // a wait or a blocking call outside a fiber
};

// tell_fallback writes the line of a fallback that is taken for the first time. Any context, a small stack and a signal
// handler too. Cost without COIR_DEBUG: one load.
void tell_fallback(Fallback taken) noexcept;

}  // namespace coir
