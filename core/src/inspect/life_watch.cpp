#include <coir/life_watch.h>

#include "inspect/heartbeats.h"
#include "inspect/kept_workers.h"
#include "inspect/watch_thread.h"
#include "schedule/visit.h"

namespace coir {

namespace {

struct Life {
  LifeWatch::Look look;
  LifeWatch::Tell tell;
  std::int64_t patience_ns = 0;
  KeptWorkers kept;
  WatchThread thread;
};
constinit Life g_life{};

bool workers_switch() noexcept {
  const Visit run;
  return !run || !g_life.kept.look(*run, g_life.patience_ns, KeptWorkers::Starved::counts, g_life.tell);
}

std::int64_t look_at_life(void*) noexcept {
  // A fiber that keeps its worker is named before the groups that are late for that.
  const bool switching = workers_switch();
  const bool alive = heartbeats_in_time(g_life.tell) && switching;
  const LifeWatch::Turn next = g_life.look(alive);
  g_life.patience_ns = next.patience.count();
  return next.pause.count();
}

}  // namespace

std::expected<void, Error> LifeWatch::start(std::chrono::nanoseconds patience, Look look, Tell tell) noexcept {
  g_life.look = look;
  g_life.tell = tell;
  g_life.patience_ns = patience.count();
  g_life.kept.forget();
  if (const int error = g_life.thread.start(look_at_life, nullptr); error != 0)
    return std::unexpected(Error::from_errno(error));
  return {};
}

void LifeWatch::stop() noexcept {
  g_life.thread.stop();
}

}  // namespace coir
