#include "base/spare_mappings.h"

#include <coir/port/memory.h>

#include <new>

namespace coir {

void* SpareMappings::take_above(std::size_t left) noexcept {
  const Locked locked(lock_);
  if (count_ <= left) return nullptr;
  --count_;
  return spares_.pop();
}

void* SpareMappings::take(bool may_relieve) noexcept {
  if (void* const spare = take_above(kept_); spare != nullptr) return spare;
  begin();
  if (!(may_relieve ? Pressure::charge(account_, bytes_) : account_.charge(bytes_))) return nullptr;
  void* const mapping = port::reserve(bytes_);
  if (mapping == nullptr) account_.refund(bytes_);
  return mapping;
}

void SpareMappings::give(void* mapping) noexcept {
  {
    const Locked locked(lock_);
    if (count_ < most_) {
      spares_.push(*::new (mapping) Spare);
      ++count_;
      return;
    }
  }
  port::release(mapping, bytes_);
  account_.refund(bytes_);
}

std::size_t SpareMappings::spare_bytes() noexcept {
  const Locked locked(lock_);
  return count_ * bytes_;
}

std::size_t SpareMappings::trim(std::size_t wanted) noexcept {
  std::size_t freed = 0;
  while (freed < wanted) {
    void* const spare = take_above(kept_);
    if (spare == nullptr) break;
    port::release(spare, bytes_);
    account_.refund(bytes_);
    freed += bytes_;
  }
  return freed;
}

// begin offers the spare ones to whoever makes room. They live as long as the process, and so does the offer.
void SpareMappings::begin() noexcept {
  {
    const Locked locked(lock_);
    if (begun_) return;
    begun_ = true;
  }
  Pressure::add(relief_);
}

}  // namespace coir
