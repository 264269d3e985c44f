#pragma once

#include <pthread.h>

#include <memory>
#include <utility>

namespace coir::test {

// Thread runs a body on an OS thread of its own and joins it at the end of its scope, or in join().
class Thread {
 public:
  template <class Body>
  explicit Thread(Body body) {
    auto* owned = new Body(std::move(body));
    running_ = pthread_create(&thread_, nullptr, &run<Body>, owned) == 0;
    if (!running_) delete owned;
  }
  ~Thread() { join(); }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  void join() noexcept {
    if (std::exchange(running_, false)) pthread_join(thread_, nullptr);
  }

 private:
  template <class Body>
  static void* run(void* argument) {
    const std::unique_ptr<Body> body(static_cast<Body*>(argument));
    (*body)();
    return nullptr;
  }

  pthread_t thread_{};
  bool running_ = false;
};

}  // namespace coir::test
