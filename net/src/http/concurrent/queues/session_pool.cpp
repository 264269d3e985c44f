#include "http/concurrent/queues/session_pool.h"

#include <coir/detail/accounts.h>
#include <coir/ledger.h>
#include <coir/port/memory.h>

#include <algorithm>
#include <new>
#include <utility>

namespace coir::http {

bool SessionPool::available() const noexcept {
  if (taken_ >= most_active_) return false;
  if (unused_ != nullptr) return true;
  return may_grow() && account::http.fits(sizeof(SessionBuffers)) && Ledger::total().fits(sizeof(SessionBuffers));
}

SessionBuffers* SessionPool::take() noexcept {
  if (taken_ >= most_active_) return nullptr;
  SessionBuffers* buffers = unused_;
  if (buffers != nullptr) {
    unused_ = buffers->next_free;
    surplus_ = std::min(surplus_, --unused_count_);
  } else if (may_grow() && account::http.charge(sizeof(SessionBuffers))) {
    const std::size_t number = freed_count_ > 0 ? freed_[--freed_count_] : used_++;
    buffers = new (array_ + number) SessionBuffers;
  }
  if (buffers != nullptr) ++taken_;
  return buffers;
}

void SessionPool::give(SessionBuffers& buffers) noexcept {
  keep(buffers);
  --taken_;
}

void SessionPool::keep(SessionBuffers& buffers) noexcept {
  buffers.next_free = unused_;
  unused_ = &buffers;
  ++unused_count_;
}

SessionBuffers* SessionPool::take_unused() noexcept {
  SessionBuffers* const buffers = unused_;
  if (buffers == nullptr) return nullptr;
  unused_ = buffers->next_free;
  surplus_ = std::min(surplus_, --unused_count_);
  return buffers;
}

bool SessionPool::free(SessionBuffers& buffers) noexcept {
  return port::give_back(&buffers, sizeof(SessionBuffers));
}

void SessionPool::note_freed(SessionBuffers& buffers) noexcept {
  freed_[freed_count_++] = static_cast<std::uint32_t>(&buffers - array_);
  account::http.refund(sizeof(SessionBuffers));
}

std::size_t SessionPool::surplus() noexcept {
  return std::exchange(surplus_, unused_count_);
}

SessionPool::~SessionPool() {
  account::http.refund((used_ - freed_count_) * sizeof(SessionBuffers));
}

}  // namespace coir::http
