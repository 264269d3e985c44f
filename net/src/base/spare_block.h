#pragma once

#include <coir/atomic.h>
#include <stdlib.h>

#include <cstddef>
#include <utility>

namespace coir {

// SpareBlock keeps one block of memory that came back for whoever is next. The C library's free gives a block of some
// kilobytes back to the kernel: two system calls and a fresh page each time for who takes one, frees it and takes it again.
//
//   SpareBlock spare;
//   auto [memory, bytes] = spare.take(2000);     // null: no memory
//   spare.give({memory, bytes});
//
// The ledger is the caller's: a block that is spare is as much as one, and its owner's. From fibers, and from threads where
// there are many workers; nothing here parks.
class SpareBlock {
 public:
  // A larger block is not kept. A sanitizer is to see the use of one that has come back: under one, none is.
  static constexpr std::size_t kMost = 4096;
#if COIR_ASAN || COIR_TSAN
  static constexpr bool kKeeps = false;
#else
  static constexpr bool kKeeps = true;
#endif

  struct Block {
    void* memory;
    std::size_t bytes;  // at least as many as were asked for
  };

  constexpr SpareBlock() noexcept = default;
  SpareBlock(const SpareBlock&) = delete;
  SpareBlock& operator=(const SpareBlock&) = delete;
  ~SpareBlock() { free(kept_.load(std::memory_order_relaxed)); }

  Block take(std::size_t bytes) noexcept {
    // acquire pairs with the release in give: the block's size is there.
    Kept* const kept = kept_.exchange(nullptr, std::memory_order_acquire);
    // One that is much too large would be more than its user is charged for.
    if (kept != nullptr && kept->bytes >= bytes && kept->bytes <= 2 * bytes) return {kept, kept->bytes};
    free(kept);
    return {malloc(bytes), bytes};
  }

  void give(Block block) noexcept {
    if (kKeeps && block.bytes <= kMost) {
      auto* const kept = static_cast<Kept*>(block.memory);
      kept->bytes = block.bytes;
      block.memory = kept_.exchange(kept, std::memory_order_acq_rel);
    }
    free(block.memory);
  }

 private:
  struct Kept {
    std::size_t bytes;
  };

  Atomic<Kept*> kept_ = nullptr;
};

}  // namespace coir
