#include "tls/tally.h"

#include <coir/net/tls.h>
#include <coir/pressure.h>
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
#if defined(COIR_NO_ASYNC) && COIR_NO_ASYNC
constinit Tally* t_tally = nullptr;
constinit const Lent* t_lent = nullptr;
#else
constinit thread_local Tally* t_tally = nullptr;
constinit thread_local const Lent* t_lent = nullptr;
#endif

}  // namespace

Tally::~Tally() {
  free_kept();
  account_->refund(charged_);
  // That it does not fit any more is no reason to lose sight of it, but there is nobody left to refuse.
  if (used_ != 0) static_cast<void>(account::tls.charge(used_));
}

bool Tally::reserve(std::size_t bytes) noexcept {
  // Where the account's own ceiling is reached nobody else's memory would help.
  if (!account_->fits(bytes) || !Pressure::charge(*account_, bytes)) return false;
  charged_ += bytes;
  return true;
}

bool Tally::charge_more(std::size_t least) noexcept {
  const std::size_t bytes = std::max(least, kStep);
  if (!account_->charge(bytes)) return false;
  charged_ += bytes;
  return true;
}

void Tally::free_kept() noexcept {
  for (Block*& list : kept_) {
    while (Block* const block = list) {
      list = block->next;
      give(block->bytes);
      free(block);
    }
  }
}

void Tally::settle() noexcept {
  free_kept();
  if (charged_ > used_) account_->refund(std::exchange(charged_, used_) - used_);
}

bool Tally::move_to(Account& account) noexcept {
  free_kept();
  // The total holds both for a moment, unless the old one goes first; then nobody may take what it leaves.
  if (!Pressure::charge(account, used_)) return false;
  account_->refund(charged_);
  account_ = &account;
  charged_ = used_;
  return true;
}

Paying::Paying(Tally& tally) noexcept : before_(std::exchange(t_tally, &tally)) {}
Paying::~Paying() {
  t_tally = before_;
}

void lend(const Lent* lent) noexcept {
  t_lent = lent;
}

}  // namespace tls
}  // namespace coir

using namespace coir;
using tls::Tally;
using Block = tls::Tally::Block;

extern "C" void* coir_tls_calloc(std::size_t count, std::size_t size) {
  if (const tls::Lent* const lent = tls::t_lent; lent != nullptr && count == 1) {
    for (int i = 0; i < 2; ++i) {
      if (size == lent->bytes[i]) return lent->memory[i];
    }
  }
  std::size_t bytes, whole;
  if (__builtin_mul_overflow(count, size, &bytes)) return nullptr;
  if (__builtin_add_overflow(bytes, sizeof(Block) + Tally::kGrain - 1, &whole)) return nullptr;
  whole &= ~(Tally::kGrain - 1);
  tls::Tally* const tally = tls::t_tally;
  if (tally != nullptr) {
    if (Block* const block = tally->kept(whole)) return memset(block + 1, 0, bytes);
  }
  if (!(tally != nullptr ? tally->take(whole) : account::tls.charge(whole))) return nullptr;
  if (void* const memory = calloc(1, whole)) return ::new (memory) Block{whole, nullptr} + 1;
  if (tally != nullptr) {
    tally->give(whole);
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
  tls::Tally* const tally = tls::t_tally;
  if (tally == nullptr) {
    account::tls.refund(block->bytes);
  } else if (tally->keep(block)) {
    return;
  } else {
    tally->give(block->bytes);
  }
  free(block);
}
