#include "inspect/watch_thread.h"

#include <poll.h>
#include <unistd.h>

#include <string_view>

#include <coir/port/futex.h>

#include "base/thread.h"

namespace coir {

namespace {

constexpr std::size_t kStackBytes = 64 * 1024;

}  // namespace

bool can_tell() noexcept {
  pollfd entry = {.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  return poll(&entry, 1, 0) == 1 && (entry.revents & POLLOUT) != 0;
}

void tell_name(Line& line, const LifeWatch::Tell& tell) noexcept {
  if (tell) {
    std::string_view text = line.view();
    text.remove_prefix(std::string_view(kNaming).size());
    tell(text.substr(0, text.size() - 1));
  } else if (can_tell()) {
    line.send(STDERR_FILENO);
  }
}

void* WatchThread::run(void* self) noexcept {
  auto& watch = *static_cast<WatchThread*>(self);
  while (watch.stop_.load(std::memory_order_acquire) == 0)
    port::futex_wait(watch.stop_, 0, watch.look_(watch.context_));
  return nullptr;
}

int WatchThread::start(Look look, void* context) noexcept {
  look_ = look;
  context_ = context;
  stop_.store(0, std::memory_order_relaxed);
  unseen_threads.fetch_add(1, std::memory_order_relaxed);
  const int error = start_thread(thread_, kStackBytes, all_but_faults(), run, this);
  running_ = error == 0;
  if (!running_) unseen_threads.fetch_sub(1, std::memory_order_relaxed);
  return error;
}

void WatchThread::stop() noexcept {
  if (!running_) return;
  stop_.store(1, std::memory_order_release);
  port::futex_wake(stop_);
  pthread_join(thread_, nullptr);
  unseen_threads.fetch_sub(1, std::memory_order_relaxed);
  running_ = false;
}

}  // namespace coir
