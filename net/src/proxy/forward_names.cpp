// The names by which a proxy knows itself, and its requests.

#include <string.h>
#include <sys/random.h>

#include "proxy/forward_keeper.h"

namespace coir::http {

// Two proxies on one way must not take each other for themselves.
ForwardKeeper::ForwardKeeper() noexcept {
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number) {
    number = static_cast<std::uint64_t>(monotonic_ns()) * 0x9e3779b97f4a7c15;
  }
  first_id_ = number * 0xbf58476d1ce4e5b9 ^ number >> 29;
  memcpy(pseudonym_, "coir-", 5);
  for (std::size_t at = 5; at < sizeof pseudonym_; ++at, number >>= 5) {
    pseudonym_[at] = "abcdefghijklmnopqrstuvwxyz234567"[number & 31];
  }
}

// Numbers follow each other, so that none comes twice. A bijection makes the digits of each, which do not show the order.
void ForwardKeeper::make_id(std::span<char, 16> digits) noexcept {
  std::uint64_t number = first_id_ + ids_.fetch_add(1, std::memory_order_relaxed);
  number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9;
  number = (number ^ number >> 27) * 0x94d049bb133111eb;
  number ^= number >> 31;
  for (char& digit : digits) {
    digit = "0123456789abcdef"[number & 15];
    number >>= 4;
  }
}

}  // namespace coir::http
