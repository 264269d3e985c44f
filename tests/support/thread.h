#pragma once

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <utility>

#include "until.h"

namespace coir::test {

// Thread runs a body on an OS thread of its own and joins it at the end of its scope, or in join().
class Thread {
 public:
  template <class Body>
  explicit Thread(Body body) {
    auto* owned = new Start<Body>{std::move(body), &id_};
    running_ = pthread_create(&thread_, nullptr, &run<Body>, owned) == 0;
    if (!running_) delete owned;
  }
  ~Thread() { join(); }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  void join() noexcept {
    if (std::exchange(running_, false)) pthread_join(thread_, nullptr);
  }

  // until_blocked returns once the kernel has put the thread to sleep in its body, or it has ended.
  void until_blocked() const {
    until([this] { return id_.load() != 0; });
    test::until_blocked(id_.load());
  }

 private:
  template <class Body>
  struct Start {
    Body body;
    std::atomic<pid_t>* id;
  };
  template <class Body>
  static void* run(void* argument) {
    const std::unique_ptr<Start<Body>> start(static_cast<Start<Body>*>(argument));
    start->id->store(gettid());
    start->body();
    return nullptr;
  }

  std::atomic<pid_t> id_{0};

  pthread_t thread_{};
  bool running_ = false;
};

}  // namespace coir::test
