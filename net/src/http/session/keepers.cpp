// The keepers of one server. Declared in http/session/keeper.h.
#include "http/session/keepers.h"
#include "base/turn.h"
#include "http/session/engine.h"

namespace coir::http {
namespace {

// Guards keepers that change their server against that server's end.
constinit Spinlock g_changing;

}  // namespace

void Keepers::forget() noexcept {
  while (Keeper* const keeper = visit(nullptr)) {
    keeper->forget_all();
    const Locked changing(g_changing);
    leave(*keeper);
    list_.remove(*keeper);
    keeper->set_engine(nullptr);
  }
}

bool Keepers::add(Keeper& keeper) noexcept {
  if (keeper.engine() == &engine_) return true;
  const Locked changing(g_changing);
  Engine* const before = keeper.engine();
  if (before != nullptr && before != &engine_ && before->stopping()) static_cast<void>(before->keepers.let_go(keeper));
  Locked locked(lock_);
  // If two add it at the same time, one of them does.
  if (keeper.engine() != nullptr) return keeper.engine() == &engine_;
  list_.push_back(keeper);
  keeper.set_engine(&engine_);
  return true;
}

bool Keepers::let_go(Keeper& keeper) noexcept {
  Locked locked(lock_);
  if (keeper.visits != 0 || keeper.size() != 0 || !keeper.stopped()) return false;
  list_.remove(keeper);
  keeper.set_engine(nullptr);
  return true;
}

void Keepers::remove(Keeper& keeper) noexcept {
  for (;; let_others_run()) {
    Locked locked(lock_);
    if (keeper.visits != 0) continue;
    list_.remove(keeper);
    keeper.set_engine(nullptr);
    return;
  }
}

Keeper* Keepers::visit(Keeper* keeper) noexcept {
  Locked locked(lock_);
  Keeper* const next = keeper == nullptr ? list_.front() : keeper->next;
  if (keeper != nullptr) --keeper->visits;
  if (next != nullptr) ++next->visits;
  return next;
}

void Keepers::leave(Keeper& keeper) noexcept {
  Locked locked(lock_);
  --keeper.visits;
}

bool Keepers::stop() noexcept {
  bool stopped = true;
  for (Keeper* keeper = visit(nullptr); keeper != nullptr; keeper = visit(keeper)) {
    keeper->stopping();
    engine_.counters.stopped_idle.fetch_add(keeper->close_resting(), std::memory_order_relaxed);
    if (keeper->size() != 0 || !keeper->stopped()) stopped = false;
  }
  return stopped;
}

bool Keepers::evict(std::int64_t not_after_ns) noexcept {
  for (Keeper* keeper = visit(nullptr); keeper != nullptr; keeper = visit(keeper)) {
    if (!keeper->evict(not_after_ns)) continue;
    leave(*keeper);
    return true;
  }
  return false;
}

void Keepers::look_around(std::int64_t now_ns) noexcept {
  for (bool again = true; again;) {
    again = false;
    for (Keeper* keeper = visit(nullptr); keeper != nullptr; keeper = visit(keeper)) {
      if (keeper->look_around(now_ns)) again = true;
    }
  }
}

std::size_t Keepers::kept() noexcept {
  Locked locked(lock_);
  std::size_t sum = 0;
  for (Keeper* keeper = list_.front(); keeper != nullptr; keeper = keeper->next) sum += keeper->size();
  return sum;
}

}  // namespace coir::http
