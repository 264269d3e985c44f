#pragma once

#include <cstddef>

namespace coir {

// charge_heap charges account::heap with a block of `bytes`; false: a ceiling would be passed. refund_heap takes the
// charge back, on any thread. Both are a few instructions as long as the thread has credit.
bool charge_heap(std::size_t bytes) noexcept;
void refund_heap(std::size_t bytes) noexcept;

}  // namespace coir
