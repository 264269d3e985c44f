#include "tls/library/session_allocator.h"

#include <coir/config.h>
#include <coir/pressure.h>
#include <coir/tls.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <new>
#include <utility>

namespace coir {

namespace account {
constinit Account tls("tls");
constinit Account handshakes("handshakes");
}  // namespace account

namespace tls {
namespace {

constexpr std::size_t kStep = 2048;

// Neither survives a park: they are set around calls that do not.
#if COIR_NO_ASYNC
constinit SessionAllocator* t_allocator = nullptr;
constinit const Lent* t_lent = nullptr;
#else
constinit thread_local SessionAllocator* t_allocator = nullptr;
constinit thread_local const Lent* t_lent = nullptr;
#endif

}  // namespace

SessionAllocator::~SessionAllocator() {
  free_kept();
  account_->refund(charged_);
  // Charge it even beyond the ceiling: it stays allocated, and nobody is left to refuse.
  if (used_ != 0) static_cast<void>(account::tls.charge(used_));
}

bool SessionAllocator::reserve(std::size_t bytes) noexcept {
  // At the account's own ceiling, freeing other memory would not help.
  if (!account_->fits(bytes) || !Pressure::charge(*account_, bytes)) return false;
  charged_ += bytes;
  return true;
}

bool SessionAllocator::charge_more(std::size_t least) noexcept {
  const std::size_t bytes = std::max(least, kStep);
  if (!account_->charge(bytes)) return false;
  charged_ += bytes;
  return true;
}

void SessionAllocator::free_kept() noexcept {
  for (detail::IntrusiveStack<Block>& list : kept_) {
    while (Block* const block = list.pop()) {
      give(block->bytes);
      free(block);
    }
  }
}

void SessionAllocator::flush() noexcept {
  free_kept();
  if (charged_ > used_) account_->refund(std::exchange(charged_, used_) - used_);
}

bool SessionAllocator::move_to(Account& account) noexcept {
  free_kept();
  // The total would hold both charges for a moment; so refund the old one first, under a hold on what it leaves.
  if (!Pressure::charge(account, used_)) return false;
  account_->refund(charged_);
  account_ = &account;
  charged_ = used_;
  return true;
}

Paying::Paying(SessionAllocator& allocator) noexcept : before_(std::exchange(t_allocator, &allocator)) {}
Paying::~Paying() {
  t_allocator = before_;
}

void lend(const Lent* lent) noexcept {
  t_lent = lent;
}

}  // namespace tls
}  // namespace coir

using namespace coir;
using tls::SessionAllocator;
using Block = tls::SessionAllocator::Block;

extern "C" void* coir_tls_calloc(std::size_t count, std::size_t size) {
  if (const tls::Lent* const lent = tls::t_lent; lent != nullptr && count == 1) {
    for (int i = 0; i < 2; ++i) {
      if (size == lent->bytes[i]) return lent->memory[i];
    }
  }
  std::size_t bytes, whole;
  if (__builtin_mul_overflow(count, size, &bytes)) return nullptr;
  if (__builtin_add_overflow(bytes, sizeof(Block) + SessionAllocator::kGrain - 1, &whole)) return nullptr;
  whole &= ~(SessionAllocator::kGrain - 1);
  tls::SessionAllocator* const allocator = tls::t_allocator;
  if (allocator != nullptr) {
    if (Block* const block = allocator->kept(whole)) return memset(block + 1, 0, bytes);
  }
  if (!(allocator != nullptr ? allocator->take(whole) : account::tls.charge(whole))) return nullptr;
  if (void* const memory = calloc(1, whole)) return ::new (memory) Block{whole, nullptr} + 1;
  if (allocator != nullptr) {
    allocator->give(whole);
  } else {
    account::tls.refund(whole);
  }
  return nullptr;
}

extern "C" void coir_tls_free(void* memory) {
  if (memory == nullptr) return;
  if (const tls::Lent* const lent = tls::t_lent; lent != nullptr) {
    if (memory == lent->memory[0] || memory == lent->memory[1]) return;
  }
  Block* const block = static_cast<Block*>(memory) - 1;
  tls::SessionAllocator* const allocator = tls::t_allocator;
  if (allocator == nullptr) {
    account::tls.refund(block->bytes);
  } else if (allocator->keep(block)) {
    return;
  } else {
    allocator->give(block->bytes);
  }
  free(block);
}
