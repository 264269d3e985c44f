#include "http/concurrent/session_host.h"

#include <coir/fiber.h>
#include <coir/runtime.h>
#include <coir/stack_size.h>
#include <signal.h>

#include "http/concurrent/dispatcher.h"

namespace coir::http {
namespace {

// TLS and functions of the C library need this much stack below a handler.
constexpr std::size_t kThreadStack = 256_KiB;

}  // namespace

SessionHost::~SessionHost() {
  if constexpr (kManyWorkers) {
    ends_.store(true);
    wanted_.release(started_);
    for (const pthread_t thread : threads_.first(started_)) pthread_join(thread, nullptr);
  }
}

std::expected<void, Error> SessionHost::start() noexcept {
  if constexpr (kManyWorkers) {
    if (threads_.empty()) return {};
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kThreadStack + handler_stack_);
    // Signals are for the program's own threads.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    for (pthread_t& thread : threads_) {
      if (pthread_create(&thread, &attributes, run, this) != 0) break;
      ++started_;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_attr_destroy(&attributes);
    if (started_ != threads_.size()) return std::unexpected(Error{ErrorCode::limit});
  }
  return {};
}

void* SessionHost::run(void* self) noexcept {
  auto& host = *static_cast<SessionHost*>(self);
  for (;;) {
    if (host.wanted_.acquire() && host.ends_.load()) return nullptr;
    host.dispatcher_.serve_waiting();
  }
}

bool SessionHost::serve_waiting() noexcept {
  if (kManyWorkers && !threads_.empty()) [[unlikely]] {
    wanted_.release();
    return true;
  }
  // A handler's wait may call this, and it serves others: no child of the handler's.
  const Fiber fiber = spawn({.name = "http", .stack = handler_stack_, .detached = true},
                            [this]() noexcept { dispatcher_.serve_waiting(); });
  return fiber.started();
}

void SessionHost::cut_off() noexcept {
  shutdown();
  if (!threads_.empty()) dispatcher_.waits.end_all();
}

}  // namespace coir::http
