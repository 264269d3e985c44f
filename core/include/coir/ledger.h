#pragma once

// Memory that grows with load is charged to an account first.
//
//   constinit coir::Account sessions("sessions");        // static, lives as long as the process
//
//   bool open_session() {
//     if (!sessions.charge(400)) return false;
//     sessions.refund(400);
//     return true;
//   }

#include <cstddef>
#include <cstdint>

#include <coir/atomic.h>

namespace coir {

// The ledger is the process's memory budget: one total with a ceiling, divided into named accounts. All memory that
// grows with load is charged to an account before it is taken and refunded when it is given back; a charge that would
// pass a ceiling is refused, and the caller turns the piece of work away. Nothing here allocates, parks or makes a
// system call, so that it works at the ceiling too, in every build, on fibers and threads.
//
// Memory that the kernel holds for the process counts as well: whoever makes it hold some charges an estimate.
class Account {
 public:
  // `name` outlives the account. It enters the ledger's list with its first charge or ceiling.
  explicit constexpr Account(const char* name) noexcept : name_(name) {}
  Account(const Account&) = delete;
  Account& operator=(const Account&) = delete;

  // charge takes `bytes` from this account and the total, or nothing: false when a ceiling would be passed, and the
  // refusal is counted where it happened. Cost: two additions, atomic in builds with several workers.
  [[nodiscard]] bool charge(std::size_t bytes) noexcept;

  // refund gives back what was charged.
  void refund(std::size_t bytes) noexcept;

  // set_ceiling limits this account; SIZE_MAX, the default, leaves it to the total. Memory charged beyond it
  // already stays charged.
  void set_ceiling(std::size_t bytes) noexcept;

  // fits tells whether `bytes` more would be granted now; lacks returns how many of them would not.
  bool fits(std::size_t bytes) const noexcept { return lacks(bytes) == 0; }
  std::size_t lacks(std::size_t bytes) const noexcept {
    const std::size_t ceiling = this->ceiling();
    const std::size_t used = this->used();
    const std::size_t room = used < ceiling ? ceiling - used : 0;
    return bytes <= room && used <= ceiling ? 0 : bytes + (used > ceiling ? used - ceiling : 0) - room;
  }

  const char* name() const noexcept { return name_; }
  std::size_t used() const noexcept { return used_.load(std::memory_order_relaxed); }
  std::size_t high_water() const noexcept { return high_.load(std::memory_order_relaxed); }
  std::size_t ceiling() const noexcept { return ceiling_.load(std::memory_order_relaxed); }
  std::uint64_t refusals() const noexcept { return refusals_.load(std::memory_order_relaxed); }
  const Account* next() const noexcept { return next_.load(std::memory_order_acquire); }

 private:
  friend class Ledger;

  void enter() noexcept;
  bool take(std::size_t bytes) noexcept;
  void raise_high() noexcept;

  const char* name_;
  Atomic<std::size_t> used_{0};
  Atomic<std::size_t> high_{0};
  Atomic<std::size_t> ceiling_{SIZE_MAX};
  Atomic<std::uint64_t> refusals_{0};
  Atomic<bool> entered_{false};
  Atomic<Account*> next_{nullptr};  // of a list without a lock: accounts are added only
};

// Ledger is the total over all accounts.
class Ledger {
 public:
  // total is the account that every charge goes through as well: its ceiling is the promise of the process.
  static Account& total() noexcept;

  // accounts is the first in the list of accounts that were ever charged or limited, the last entered first;
  // Account::next goes on. The total is not among them.
  static const Account* accounts() noexcept;

  // find returns the account of that name, or null.
  static Account* find(const char* name) noexcept;
};

// The accounts that core itself charges; net's are in coir/detail/accounts.h.
namespace account {
extern Account stacks;    // fiber stacks in use or kept hot
extern Account channels;  // what was sent and not received yet
extern Account trace;     // rings of state changes, in builds with tracing
extern Account process;   // the program itself: its data, its first stacks, its tables
}  // namespace account

}  // namespace coir
