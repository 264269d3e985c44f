#pragma once

#include <coir/error.h>
#include <coir/semaphore.h>
#include <pthread.h>

#include <cstddef>
#include <expected>
#include <span>

namespace coir::http {

class Dispatcher;

// SessionHost gives each session its stack: a fiber of its own or, in Mode::threads, one of so many plain threads. An
// engine is the same in every mode but for this, and for Engine::lends_places.
//
// A thread serves one connection after the other while some wait, as a fiber does, and then waits to be given more.
class SessionHost {
 public:
  // `threads` is memory for the numbers of the threads; empty: sessions run on fibers.
  SessionHost(Dispatcher& dispatcher, std::size_t handler_stack, std::span<pthread_t> threads) noexcept
      : dispatcher_(dispatcher), handler_stack_(handler_stack), threads_(threads) {}
  SessionHost(const SessionHost&) = delete;
  SessionHost& operator=(const SessionHost&) = delete;
  // The threads end; none of them serves any more.
  ~SessionHost();

  // start starts the threads. Error: limit.
  std::expected<void, Error> start() noexcept;

  // serve_waiting has Dispatcher::serve_waiting called soon, on a fiber or by the next thread that is idle. False: there
  // is no stack. Any context but a signal handler.
  bool serve_waiting() noexcept;

  // cut_off ends every wait of handlers: by shutdown, and on threads, which that does not reach, by the end of their
  // clients. From a fiber, again and again until the server has stopped.
  void cut_off() noexcept;

 private:
  static void* run(void* self) noexcept;

  Dispatcher& dispatcher_;
  const std::size_t handler_stack_;
  const std::span<pthread_t> threads_;
  std::size_t started_ = 0;
  Semaphore wanted_{0};
  Atomic<bool> ends_ = false;
};

}  // namespace coir::http
