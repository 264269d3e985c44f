#include "base/first_secret.h"

#include <coir/net/randomness.h>
#include <string.h>

namespace coir {

FirstSecret::~FirstSecret() {
  explicit_bzero(secret_, sizeof secret_);
}

bool FirstSecret::draw(Deadline deadline) noexcept {
  // acquire pairs with the release below: the secret is there.
  if (drawn_.load(std::memory_order_acquire)) return true;
  char drawn[kBytes];
  if (!draw_secret(drawn, deadline)) return false;
  {
    const Locked locked(lock_);
    if (!drawn_.load(std::memory_order_relaxed)) memcpy(secret_, drawn, sizeof secret_);
    drawn_.store(true, std::memory_order_release);
  }
  explicit_bzero(drawn, sizeof drawn);
  return true;
}

bool FirstSecret::copy(std::span<char, kBytes> into) noexcept {
  const Locked locked(lock_);
  if (!drawn_.load(std::memory_order_relaxed)) return false;
  memcpy(into.data(), secret_, kBytes);
  return true;
}

void FirstSecret::forget() noexcept {
  const Locked locked(lock_);
  drawn_.store(false, std::memory_order_relaxed);
}

}  // namespace coir
