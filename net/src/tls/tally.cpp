#include "tally.h"

#include <coir/net/tls.h>
#include <coir/pressure.h>
#include <malloc.h>
#include <stdlib.h>

#include <algorithm>
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
constinit thread_local Tally* t_tally = nullptr;
constinit thread_local const Lent* t_lent = nullptr;

// What an allocation takes beside what was asked for, on the average of musl's size classes and slot headers.
constexpr std::size_t taken_by(std::size_t bytes) noexcept {
  return bytes + 16;
}

}  // namespace

Tally::~Tally() {
  account_->refund(charged_);
  // That it does not fit any more is no reason to lose sight of it, but there is nobody left to refuse.
  if (used_ != 0) static_cast<void>(account::tls.charge(used_));
}

bool Tally::reserve(std::size_t bytes) noexcept {
  if (!Pressure::charge(*account_, bytes)) return false;
  charged_ += bytes;
  return true;
}

bool Tally::charge_more(std::size_t least) noexcept {
  const std::size_t bytes = std::max(least, kStep);
  if (!account_->charge(bytes)) return false;
  charged_ += bytes;
  return true;
}

void Tally::settle() noexcept {
  if (charged_ > used_) account_->refund(std::exchange(charged_, used_) - used_);
}

bool Tally::move_to(Account& account) noexcept {
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

extern "C" void* coir_tls_calloc(std::size_t count, std::size_t size) {
  if (const tls::Lent* const lent = tls::t_lent; lent != nullptr && count == 1) {
    for (int i = 0; i < 2; ++i) {
      if (size == lent->bytes[i]) return lent->memory[i];
    }
  }
  std::size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return nullptr;
  tls::Tally* const tally = tls::t_tally;
  const std::size_t charged = tls::taken_by(bytes);
  if (!(tally != nullptr ? tally->take(charged) : account::tls.charge(charged))) return nullptr;
  void* const memory = calloc(1, bytes);
  if (memory != nullptr) {
    // The C library may give more than it was asked for, and tells at free how much that is.
    const std::size_t real = tls::taken_by(malloc_usable_size(memory));
    if (real <= charged || (tally != nullptr ? tally->take(real - charged) : account::tls.charge(real - charged))) {
      return memory;
    }
    free(memory);
  }
  if (tally != nullptr) {
    tally->give(charged);
  } else {
    account::tls.refund(charged);
  }
  return nullptr;
}

extern "C" void coir_tls_free(void* memory) {
  if (memory == nullptr) return;
  if (const tls::Lent* const lent = tls::t_lent; lent != nullptr) {
    if (memory == lent->memory[0] || memory == lent->memory[1]) return;
  }
  const std::size_t bytes = tls::taken_by(malloc_usable_size(memory));
  free(memory);
  if (tls::Tally* const tally = tls::t_tally; tally != nullptr) {
    tally->give(bytes);
  } else {
    account::tls.refund(bytes);
  }
}
