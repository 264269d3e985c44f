#pragma once

#include <coir/detail/intrusive_list.h>
#include <coir/ledger.h>
#include <coir/pressure.h>
#include <coir/spinlock.h>

#include <cstddef>

namespace coir {

// SpareMappings lends mappings of one size, whole pages each, and keeps a few of those that come back for whoever is
// next: they are hot, and cost no system call. The others go back to the kernel at once, and the spare ones when memory
// is short (the step `trim`), but for `kept`.
//
//   constinit SpareMappings g_spares(account::tls, 24 * 1024, 1, 8);   // lives as long as the process
//
// Each mapping, lent or spare, is charged to the account. From fibers and threads, also while pressure is relieved;
// nothing here parks.
class SpareMappings {
 public:
  // At most `most` are spare.
  constexpr SpareMappings(Account& account, std::size_t bytes, std::size_t kept, std::size_t most) noexcept
      : account_(account), bytes_(bytes), kept_(kept), most_(most) {}
  SpareMappings(const SpareMappings&) = delete;
  SpareMappings& operator=(const SpareMappings&) = delete;

  // take lends a mapping, or returns null when the ledger or the kernel refuses. Its content is what the last borrower
  // left, or zero. Without `may_relieve` it makes no room by the reliefs of Pressure: for a caller that holds a lock which
  // they take.
  void* take(bool may_relieve = true) noexcept;
  // take_spare lends one that is spare, the kept ones too, or returns null.
  void* take_spare() noexcept { return take_above(0); }
  // give takes a mapping back. Its first word is overwritten.
  void give(void* mapping) noexcept;

  // spare_bytes is how much lies idle.
  std::size_t spare_bytes() noexcept;

 private:
  struct Spare {
    Spare* next;
  };

  void* take_above(std::size_t left) noexcept;
  std::size_t trim(std::size_t wanted) noexcept;
  void begin() noexcept;

  Account& account_;
  const std::size_t bytes_;
  const std::size_t kept_;
  const std::size_t most_;
  Spinlock lock_;
  detail::IntrusiveStack<Spare> spares_;
  std::size_t count_ = 0;
  bool begun_ = false;
  Relief relief_{
      Pressure::caches,
      [](void* self, std::size_t wanted) noexcept { return static_cast<SpareMappings*>(self)->trim(wanted); }, this};
};

}  // namespace coir
