#pragma once

#include <coir/config.h>
#include <coir/detail/intrusive_list.h>
#include <coir/ledger.h>

#include <cstddef>

namespace coir::tls {

// SessionAllocator tracks mbedTLS's allocations for one session and charges them to the ledger. mbedTLS's allocator
// knows no sessions, so a call into mbedTLS names the allocator that pays. An allocation outside any such call is the
// library's own and is charged to account::tls at once.
//
// A handshake makes some 2,000 allocations, nearly all for numbers of a few sizes. So the account is charged ahead in
// steps, and freed small blocks are kept for the next allocation of their size until flush: that saves a tenth of a
// handshake's time.
class SessionAllocator {
 public:
  explicit SessionAllocator(Account& account) noexcept : account_(&account) {}
  SessionAllocator(const SessionAllocator&) = delete;
  SessionAllocator& operator=(const SessionAllocator&) = delete;
  // The remaining blocks become the library's: tables that grew on behalf of this session and stay.
  ~SessionAllocator();

  // reserve charges `bytes` ahead, and makes room if the ledger's total is short. False: there is no room, or the
  // account is at its ceiling.
  [[nodiscard]] bool reserve(std::size_t bytes) noexcept;
  // flush frees the blocks that were kept and refunds what was charged ahead.
  void flush() noexcept;
  // move_to moves the charges to another account. False: that one has no room, and nothing has changed.
  [[nodiscard]] bool move_to(Account& account) noexcept;

  std::size_t used() const noexcept { return used_; }
  std::size_t high_water() const noexcept { return high_; }

  // take and give_back are the allocator's.
  [[nodiscard]] bool take(std::size_t bytes) noexcept {
    if (used_ + bytes > charged_ && !charge_more(used_ + bytes - charged_)) return false;
    used_ += bytes;
    if (used_ > high_) high_ = used_;
    return true;
  }
  void give(std::size_t bytes) noexcept { used_ -= bytes < used_ ? bytes : used_; }

  // A block begins with its size in all, a multiple of kGrain where it is small.
  struct alignas(16) Block {
    std::size_t bytes;
    Block* next;
  };
  static constexpr std::size_t kGrain = 32;
  static constexpr std::size_t kSmall = 512;

  // kept takes a block of that size out of those kept, or returns null. keep keeps one; false: not one of that size.
  Block* kept(std::size_t bytes) noexcept {
    if (bytes > kSmall) return nullptr;
    return kept_[bytes / kGrain - 1].pop();
  }
  bool keep(Block* block) noexcept {
    if (!kKeeps || block->bytes > kSmall) return false;
    kept_[block->bytes / kGrain - 1].push(*block);
    return true;
  }

 private:
  [[nodiscard]] bool charge_more(std::size_t least) noexcept;

  // A sanitizer wants to see every free.
  static constexpr bool kKeeps = !COIR_ASAN;

  void free_kept() noexcept;

  Account* account_;
  std::size_t used_ = 0;
  std::size_t charged_ = 0;
  std::size_t high_ = 0;
  detail::IntrusiveStack<Block> kept_[kSmall / kGrain];
};

// Paying makes an allocator pay for mbedTLS's allocations in this scope, which must not park.
class [[nodiscard]] Paying {
 public:
  explicit Paying(SessionAllocator& allocator) noexcept;
  ~Paying();
  Paying(const Paying&) = delete;
  Paying& operator=(const Paying&) = delete;

 private:
  SessionAllocator* const before_;
};

// Lending answers the next allocations of exactly these sizes with the caller's memory: mbedtls_ssl_setup allocates the
// record buffers itself. Freeing them then frees nothing.
struct Lent {
  void* memory[2];
  std::size_t bytes[2];
};
void lend(const Lent* lent) noexcept;

}  // namespace coir::tls
