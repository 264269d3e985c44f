#pragma once

namespace coir::test {

// Entropy is how much the kernel has, for programs whose getrandom(2) the linker leads to no_randomness.cpp: enough; none, however
// long a thread waits; none until a thread waits, as on a board that has just started.
enum class Entropy : int { enough, none, none_yet };

void set_entropy(Entropy entropy) noexcept;

}  // namespace coir::test
