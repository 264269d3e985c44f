#include "inspect/heartbeats.h"

#include <pthread.h>

#include <coir/deadline.h>
#include <coir/heartbeat.h>

#include "base/line.h"
#include "inspect/watch_thread.h"

namespace coir {

namespace {

// The watch's thread reads the list also in builds with one worker, where a Spinlock is empty.
pthread_mutex_t g_heartbeats_lock = PTHREAD_MUTEX_INITIALIZER;
constinit Heartbeat* g_heartbeats = nullptr;

struct ListLocked {
  ListLocked() noexcept { pthread_mutex_lock(&g_heartbeats_lock); }
  ~ListLocked() { pthread_mutex_unlock(&g_heartbeats_lock); }
  ListLocked(const ListLocked&) = delete;
  ListLocked& operator=(const ListLocked&) = delete;
};

// Late is a group that is to be named.
struct Late {
  const char* name = nullptr;
  std::int64_t silent_ns = 0, period_ns = 0;
};

[[gnu::noinline]] void write_late(const Late& late, const LifeWatch::Tell& tell) noexcept {
  Line line;
  line.text(kNaming).text("\"").text(late.name).text("\" has not reported for ").seconds(late.silent_ns);
  line.text(" s, and promises to within ").seconds(late.period_ns).text(" s\n");
  tell_name(line, tell);
}

}  // namespace

Heartbeat::Heartbeat(const char* name, std::chrono::nanoseconds period) noexcept
    : name_(name), period_ns_(period.count()), reported_ns_(monotonic_ns()) {
  const ListLocked locked;
  next_ = g_heartbeats;
  g_heartbeats = this;
}

Heartbeat::~Heartbeat() {
  const ListLocked locked;
  Heartbeat** link = &g_heartbeats;
  while (*link != this) link = &(*link)->next_;
  *link = next_;
}

void Heartbeat::report() noexcept {
  reported_ns_.store(monotonic_ns(), std::memory_order_relaxed);
}

bool heartbeats_in_time(const LifeWatch::Tell& tell) noexcept {
  bool in_time = true;
  for (;;) {
    Late late;
    {
      const ListLocked locked;
      const std::int64_t now = monotonic_ns();
      for (Heartbeat* each = g_heartbeats; each != nullptr && late.name == nullptr; each = each->next_) {
        const std::int64_t period = each->period_ns_.load(std::memory_order_relaxed);
        const std::int64_t silent = now - each->reported_ns_.load(std::memory_order_relaxed);
        if (silent <= period) {
          each->told_ = false;
          continue;
        }
        in_time = false;
        if (!each->told_) late = {.name = each->name_, .silent_ns = silent, .period_ns = period};
        each->told_ = true;
      }
    }
    if (late.name == nullptr) return in_time;
    write_late(late, tell);
  }
}

}  // namespace coir
