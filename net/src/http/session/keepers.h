#pragma once

#include <coir/atomic.h>
#include <coir/spinlock.h>

#include <cstddef>
#include <cstdint>

#include "http/session/keeper.h"

namespace coir::http {

// Keepers are the keepers that have connections of one server. keepers.cpp
class Keepers {
 public:
  explicit Keepers(Engine& engine) noexcept : engine_(engine) {}
  Keepers(const Keepers&) = delete;
  Keepers& operator=(const Keepers&) = delete;
  ~Keepers() { forget(); }

  // add is idempotent. A keeper of a server that stops, of which it keeps nothing any more, changes to this one. False: the
  // keeper serves another server. remove waits for a walk that is at this keeper.
  bool add(Keeper& keeper) noexcept;
  void remove(Keeper& keeper) noexcept;
  // forget removes all of them, before an engine that serves nothing any more is destroyed.
  void forget() noexcept;

  // stop closes all that rests and does not outlive the stop, and tells whether nothing is kept any more. Behind cut_off
  // nothing outlives it.
  bool stop() noexcept;
  void cut_off() noexcept { cut_off_.store(true, std::memory_order_relaxed); }
  bool is_cut_off() const noexcept { return cut_off_.load(std::memory_order_relaxed); }
  bool evict(std::int64_t not_after_ns) noexcept;
  std::size_t kept() noexcept;
  void look_around(std::int64_t now_ns) noexcept;
  // first begins the chain of keepers, for the engine without fibers.
  Keeper* first() const noexcept { return list_.front(); }

 private:
  // A walk calls every keeper without the lock: visit(null) begins it, visit(keeper) goes on behind `keeper`, and leave
  // ends it there.
  Keeper* visit(Keeper* keeper) noexcept;
  void leave(Keeper& keeper) noexcept;
  // let_go removes a keeper that keeps nothing. False: it keeps something, or a walk is at it.
  bool let_go(Keeper& keeper) noexcept;

  Engine& engine_;
  Atomic<bool> cut_off_ = false;
  Spinlock lock_;
  coir::detail::IntrusiveList<Keeper> list_;
};

}  // namespace coir::http
