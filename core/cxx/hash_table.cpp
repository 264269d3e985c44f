#include <__hash_table>
#include <stdexcept>

#include <cstddef>
#include <cstdint>

// The one function of libc++'s compiled part that std::unordered_map and its like call.

namespace {

bool is_prime(std::size_t n) noexcept {
  if (n < 4) return n > 1;
  if (n % 2 == 0 || n % 3 == 0) return false;
  for (std::size_t by = 5; by <= n / by; by += 6) {
    if (n % by == 0 || n % (by + 2) == 0) return false;
  }
  return true;
}

}  // namespace

// The smallest prime that is not below n; 0 for 0. A table of n buckets takes longer to fill than this takes.
std::size_t std::__next_prime(std::size_t n) {
  if (n == 0) return 0;
  if (n > PTRDIFF_MAX) std::__throw_overflow_error("a hash table of more buckets than memory");
  while (!is_prime(n)) ++n;
  return n;
}
