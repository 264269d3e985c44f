#pragma once

#include <span>

namespace coir {

// fill_with_randomness fills `into`, of 256 bytes at most, from getrandom(2), for a client's keys (RFC 6455, 5.3): what
// a page cannot foresee it cannot have sent in the clear. They keep no secret: before the kernel has gathered entropy,
// or has no such call, they are of the clock. Never waits.
void fill_with_randomness(std::span<char> into) noexcept;

}  // namespace coir
