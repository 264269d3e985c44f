#include <coir/ledger.h>

#include <string.h>

namespace coir {

namespace {

constinit Account g_total("total");
constinit Atomic<Account*> g_first{nullptr};

}  // namespace

namespace account {
constinit Account stacks("stacks");
constinit Account channels("channels");
constinit Account trace("trace");
constinit Account process("process");
}  // namespace account

bool Account::charge(std::size_t bytes) noexcept {
  if (!entered_.load(std::memory_order_relaxed)) [[unlikely]]
    enter();
  if (!take(bytes)) return false;
  if (!g_total.take(bytes)) [[unlikely]] {
    used_.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
  }
  raise_high();
  g_total.raise_high();
  return true;
}

void Account::refund(std::size_t bytes) noexcept {
  used_.fetch_sub(bytes, std::memory_order_relaxed);
  g_total.used_.fetch_sub(bytes, std::memory_order_relaxed);
}

void Account::set_ceiling(std::size_t bytes) noexcept {
  ceiling_.store(bytes, std::memory_order_relaxed);
  if (this != &g_total) enter();
}

// take adds first and tests then: two callers that race for the last bytes may both be refused, but never both served.
bool Account::take(std::size_t bytes) noexcept {
  const std::size_t before = used_.fetch_add(bytes, std::memory_order_relaxed);
  const std::size_t after = before + bytes;
  if (after > ceiling_.load(std::memory_order_relaxed) || after < before) [[unlikely]] {
    used_.fetch_sub(bytes, std::memory_order_relaxed);
    refusals_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  return true;
}

// raise_high records a granted charge. The figure never exceeds the ceiling: it leaves out a charge of another thread
// that is about to be refused.
void Account::raise_high() noexcept {
  const std::size_t used = used_.load(std::memory_order_relaxed);
  const std::size_t ceiling = ceiling_.load(std::memory_order_relaxed);
  const std::size_t now = used < ceiling ? used : ceiling;
  std::size_t high = high_.load(std::memory_order_relaxed);
  while (now > high && !high_.compare_exchange_weak(high, now, std::memory_order_relaxed, std::memory_order_relaxed)) {
  }
}

// enter puts the account at the head of the list, once. Accounts never leave it.
void Account::enter() noexcept {
  if (entered_.exchange(true, std::memory_order_acq_rel)) return;
  Account* first = g_first.load(std::memory_order_relaxed);
  do {
    next_.store(first, std::memory_order_relaxed);
    // release publishes next_ to threads that walk the list.
  } while (!g_first.compare_exchange_weak(first, this, std::memory_order_release, std::memory_order_relaxed));
}

Account& Ledger::total() noexcept {
  return g_total;
}

const Account* Ledger::accounts() noexcept {
  return g_first.load(std::memory_order_acquire);
}

Account* Ledger::find(const char* name) noexcept {
  for (Account* account = g_first.load(std::memory_order_acquire); account != nullptr;
       account = account->next_.load(std::memory_order_acquire)) {
    if (strcmp(account->name_, name) == 0) return account;
  }
  return nullptr;
}

}  // namespace coir
